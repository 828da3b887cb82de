// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/rest"
)

// newServer returns the SDK's server for all requests; each request's context contains the caller.
func (h *Handler) newServer() (*mcp.Server, error) {
	described, err := h.edition.schemas(h.Capabilities)
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: "herald", Title: "Herald", Version: h.Version, WebsiteURL: h.SiteURL},
		&mcp.ServerOptions{
			Instructions: h.edition.instructions,
			// The lists never change while the process runs, and subscriptions are not supported.
			Capabilities: &mcp.ServerCapabilities{
				Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{},
			},
		})
	rules := h.edition.rules(h.Capabilities)
	for i := range h.edition.tools {
		t := &h.edition.tools[i]
		of, ok := described[t.operation]
		if !ok {
			return nil, fmt.Errorf("the description of the REST API has no operation %s", t.operation)
		}
		server.AddTool(t.described(of, rules), h.handle(t))
	}
	h.addResources(server, rules)
	addPrompts(server)
	server.AddReceivingMiddleware(recovered)
	return server, nil
}

func (h *Handler) handle(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := callOf(ctx)
		if !c.caller.May(t.scope) { // ServeHTTP has checked the scope
			return h.result(c, rest.Refusal(ctx, &bridge.Error{Code: bridge.CodeInsufficientScope, Message: "this needs the scope " + string(t.scope)})), nil
		}
		answer := h.REST.Call(ctx, t.operation, c.caller, r.Params.Arguments, c.keys...)
		out := h.result(c, answer)
		if answer.Ignored != "" {
			out.Content = append(out.Content, &mcp.TextContent{Text: t.ignored(answer.Ignored)})
		}
		if note := h.pages(c.caller, t, &answer); note != "" {
			out.Content = append(out.Content, &mcp.TextContent{Text: note})
		}
		if note := h.suspended(c.caller); note != "" && t.publishing && !out.IsError {
			out.Content = append(out.Content, &mcp.TextContent{Text: note})
		}
		return out, nil
	}
}

// ignored returns the note about unknown arguments. names are escaped input.
func (t *tool) ignored(names string) string {
	return "ignored: " + names + ". " + t.name + " does not have these arguments, and they had no effect: see its input schema."
}

// pages returns the note with the addresses of posts' pages, or "" if there are none. REST has no field for them.
func (h *Handler) pages(caller bridge.Caller, t *tool, answer *rest.Answer) string {
	if h.Service.PageOf == nil || answer.Status >= http.StatusBadRequest {
		return ""
	}
	switch t.shows {
	case showsPosts:
		return "Users can view a post at " + h.Service.PageOf(caller.Namespace, "ID") + ", with ID replaced by its `id`."
	case showsPost:
		var of struct {
			Data struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		if err := json.Unmarshal(answer.Body, &of); err != nil || of.Data.ID == "" {
			return ""
		}
		return "Users can view this post at " + h.Service.PageOf(caller.Namespace, of.Data.ID) + "."
	case showsNoPost:
	}
	return ""
}

// waits is the note about a post that became a draft.
const waits = "The post was not published. It is kept as a draft, with the requested time, until a user in the team publishes it in Herald. " +
	"Tell the user so, and do not send it again."

// suspended returns the note for a caller whose team is suspended, or "". REST has no field for it, and a due post
// reads processing until the suspension ends.
func (h *Handler) suspended(caller bridge.Caller) string {
	since, is := h.Service.Suspended(caller)
	if !is {
		return ""
	}
	when := ""
	if !since.IsZero() {
		when = " since " + since.UTC().Format(time.RFC3339)
	}
	return "Publishing is suspended for this team" + when + ", by the people who run Herald. Posts are accepted and prepared, but not sent. Due posts have the status `processing` " +
		"and are published once the suspension ends; they do not expire until then. Tell the user so. Do not send a post again, and do not poll it."
}

// result converts a response to a tool result: the envelope as structured content, and as text for older clients. Marks
// stand in for both until the response is written; see answers.
func (h *Handler) result(c *call, of rest.Answer) *mcp.CallToolResult {
	c.envelope = of.Body
	out := &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: h.marks.text}},
		StructuredContent: h.marks.structured,
		IsError:           of.Status >= http.StatusBadRequest,
	}
	if of.Waits {
		out.Content = append(out.Content, &mcp.TextContent{Text: waits})
	}
	return out
}

// recovered converts a panic to an error: on the SDK's own goroutines it would crash the process.
func recovered(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (out mcp.Result, err error) {
		defer func() {
			if panicked := recover(); panicked != nil {
				info := callOf(ctx).info
				info.Err = fmt.Errorf("panic: %v\n%s", panicked, debug.Stack())
				out, err = nil, &jsonrpc.Error{
					Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("something went wrong on this side; quote request id %s to the administrators", info.ID),
				}
			}
		}()
		out, err = next(ctx, method, r)
		return out, worded(err)
	}
}

// worded converts an error for clients: the SDK sends unknown errors unchanged.
func worded(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*bridge.Error](err); ok {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: known.Message}
	}
	return err
}
