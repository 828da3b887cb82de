// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
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

// newServer returns the one server of the SDK that serves all requests; who calls is in the
// context of each.
func (h *Handler) newServer() (*mcp.Server, error) {
	described, err := schemasOf()
	if err != nil {
		return nil, err
	}
	server := mcp.NewServer(
		&mcp.Implementation{Name: "herald", Title: "Herald", Version: h.Version, WebsiteURL: h.SiteURL},
		&mcp.ServerOptions{
			Instructions: instructions,
			// What there is never changes while the program runs, and nothing is subscribed to.
			Capabilities: &mcp.ServerCapabilities{
				Tools: &mcp.ToolCapabilities{}, Resources: &mcp.ResourceCapabilities{}, Prompts: &mcp.PromptCapabilities{},
			},
		})
	rules := allRules(h.Capabilities)
	for i := range tools {
		t := &tools[i]
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

// handle is what the SDK calls for a tool.
func (h *Handler) handle(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		c := callOf(ctx)
		if !c.caller.May(t.scope) { // ServeHTTP has asked already
			return h.result(c, rest.Refusal(ctx, &bridge.Error{Code: bridge.CodeInsufficientScope, Message: "this needs the scope " + string(t.scope)})), nil
		}
		answer := h.REST.Call(ctx, t.operation, c.caller, r.Params.Arguments, c.keys...)
		out := h.result(c, answer)
		if answer.Ignored != "" {
			out.Content = append(out.Content, &mcp.TextContent{Text: t.ignored(answer.Ignored)})
		}
		if note := h.suspended(c.caller); note != "" && t.publishing && !out.IsError {
			out.Content = append(out.Content, &mcp.TextContent{Text: note})
		}
		return out, nil
	}
}

// ignored is what is said besides of arguments that the tool does not have. Their names are the caller's own, escaped.
func (t *tool) ignored(names string) string {
	return "ignored: " + names + ". " + t.name + " has no such arguments here, and they had no effect: see its input schema."
}

// waits is what is said besides of a post that became a draft.
const waits = "The post was not published. It is kept as a draft, with the time that was wanted, until a person of the team publishes it in Herald. " +
	"Tell the user so, and do not send it again."

// suspended is what is said besides to a caller of whose team nothing is published; "" to others.
// What REST answers has no place for it, and a post that is due reads processing until it ends.
func (h *Handler) suspended(caller bridge.Caller) string {
	since, is := h.Service.Suspended(caller)
	if !is {
		return ""
	}
	when := ""
	if !since.IsZero() {
		when = " since " + since.UTC().Format(time.RFC3339)
	}
	return "Publishing is suspended for this team" + when + ", by the people who run Herald. Posts are taken and prepared, and none is sent. What is due reads `processing` " +
		"and goes out once they lift it; until then it does not become too late. Tell the user so. Do not send a post again, and do not wait for it by reading it again and again."
}

// result is an answer as the protocol has it: the envelope as it is, and as text for
// clients that know no structured content. Marks take their places until the answer is
// written: see answers.
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

// recovered turns a panic into an answer. The SDK calls handlers on goroutines of its own,
// on which a panic would end the process.
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

// worded is an error as clients get it: the SDK sends what it does not know as it is.
func worded(err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*bridge.Error](err); ok {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: known.Message}
	}
	return err
}
