// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/herald-social/herald/apiserver/bridge"
)

const (
	notifierNote = "The `name` of the notifier."
	// onlyByPermission ends the descriptions of tools that change notifiers.
	onlyByPermission = "INSUFFICIENT_SCOPE: only an API key with the permission `notifiers` can do this; a user must do it in Herald, tell the user."
)

// notifierTools are the tools of version 2 for notifications.
var notifierTools = []tool{
	{
		name: "list_notifiers", operation: "listNotifiers", title: "List the notifiers", scope: bridge.ScopeRead,
		description: "Lists the team's notifiers, which report events such as failed posts to another system, to Slack or by email, with their `state` and the `version` that update_notifier needs. " +
			"`failing_message` says why a receiver does not accept notifications.",
		hints: mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
	},
	{
		name: "get_notifier", operation: "getNotifier", title: "Read a notifier", scope: bridge.ScopeRead,
		description: "Reads one notifier as list_notifiers does: what it reports and to whom, its `state`, and the `version` that update_notifier needs.",
		notes:       map[string]string{"id": notifierNote},
		hints:       mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
	},
	{
		name: "create_notifier", operation: "createNotifier", title: "Create a notifier", scope: bridge.ScopePublish,
		description: "Creates a notifier, which sends data about the team's posts to a URL or email address: use only one that the user gave you. " +
			"With format `standard-webhooks`, the result has the `signing_secret`, which is never shown again: give it to the user, who stores it in the receiver, and do not repeat it anywhere else. " +
			"The `url` of format `slack` is a secret too.\n\n" +
			"After an error, nothing was created. VALIDATION_ERROR names each field. " + onlyByPermission,
		hints: mcp.ToolAnnotations{DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(true)},
	},
	{
		name: "update_notifier", operation: "updateNotifier", title: "Edit, suspend or resume a notifier", scope: bridge.ScopePublish,
		description: "Changes a notifier. Before: get_notifier for its `version`. Send the fields to replace; a list is replaced as a whole. " +
			"`suspend: true` stops deliveries, and false continues them; notifications wait in the meantime, for at most a day. " +
			"After an error, nothing was changed. " + onlyByPermission,
		notes: map[string]string{"id": notifierNote},
		hints: mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(true)},
	},
	{
		name: "replace_secret", operation: "replaceSecret", title: "Replace a notifier's signing secret", scope: bridge.ScopePublish,
		description: "Creates another signing secret for a notifier of format `standard-webhooks`, and returns it once. " +
			"The receiver rejects notifications until it has the new secret: ask the user first. " + onlyByPermission,
		notes: map[string]string{"id": notifierNote},
		hints: mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: new(false)},
	},
	{
		name: "list_deliveries", operation: "listDeliveries", title: "List a notifier's deliveries", scope: bridge.ScopeRead,
		description: "Lists the notifications of a notifier that wait for delivery, and the latest others, with the error of the last attempt. The list is up to ten seconds old.",
		notes:       map[string]string{"id": notifierNote},
		hints:       mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false)},
	},
	{
		name: "resend_delivery", operation: "resendDelivery", title: "Send a notification again", scope: bridge.ScopePublish,
		description: "Sends a notification of list_deliveries again, with the same id, whether or not it was delivered. Only resend what the user asked you to resend. " + onlyByPermission,
		notes:       map[string]string{"id": notifierNote},
		hints:       mcp.ToolAnnotations{DestructiveHint: new(false), OpenWorldHint: new(true)},
	},
	{
		name: "delete_notifier", operation: "deleteNotifier", title: "Delete a notifier", scope: bridge.ScopePublish,
		description: "Deletes a notifier and its secret; what waits for delivery is not sent. It cannot be undone. " +
			"Only delete what the user asked you to delete; to stop it for a while, suspend it with update_notifier. " + onlyByPermission,
		notes: map[string]string{"id": notifierNote},
		hints: mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)},
	},
}
