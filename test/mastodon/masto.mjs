// Reads and writes posts with masto. The input and the result are described in mastodon_test.go.
import { readFileSync, writeFileSync } from "node:fs";
import { createRestAPIClient } from "masto";

const input = JSON.parse(readFileSync(0, "utf8"));
const client = createRestAPIClient({ url: input.url, accessToken: input.token });
const anonymous = createRestAPIClient({ url: input.url });

async function read(id) {
  const post = await client.v1.statuses.$select(id).fetch();
  const source = await client.v1.statuses.$select(id).source.fetch();
  return {
    id, text: source.text, html: post.content, visibility: post.visibility, spoiler: post.spoilerText, language: post.language ?? "", sensitive: post.sensitive, inReplyTo: post.inReplyToId ?? "",
    files: post.mediaAttachments.map((f) => ({ type: f.type, description: f.description ?? "", x: f.meta.focus.x, y: f.meta.focus.y })),
  };
}

async function refused(request) {
  try {
    await request;
  } catch (error) {
    return error.statusCode;
  }
  return 0;
}

const account = await client.v1.accounts.verifyCredentials();
const instance = await anonymous.v2.instance.fetch();
const found = [];
for (const id of input.read) found.push(await read(id));

const text = await client.v1.statuses.create({ status: input.text, visibility: "unlisted", language: "en" }, { requestInit: { headers: { "Idempotency-Key": input.text } } });
const again = await client.v1.statuses.create({ status: input.text + " again" }, { requestInit: { headers: { "Idempotency-Key": input.text } } });
const file = (path, type) => new Blob([readFileSync(path)], { type });
const image = await client.v2.media.create({ file: file(input.image, "image/jpeg"), description: "a picture", focus: "-0.50,0.25" });
const reply = await client.v1.statuses.create({ status: "with a picture", mediaIds: [image.id], inReplyToId: text.id, spoilerText: "a picture follows", sensitive: true });
// masto waits until the video is processed.
const video = await client.v2.media.create({ file: file(input.video, "video/mp4") });
const film = await client.v1.statuses.create({ mediaIds: [video.id], status: "" });
const context = await client.v1.statuses.$select(text.id).context.fetch();

const listed = [];
for await (const page of client.v1.accounts.$select(account.id).statuses.list({ limit: 2, excludeReblogs: true })) listed.push(...page.map((p) => p.id));
const used = await refused(client.v1.statuses.create({ status: "again", mediaIds: [image.id] }));
const long = await refused(client.v1.statuses.create({ status: "a".repeat(501) }));
const deleted = await client.v1.statuses.create({ status: "deleted at once" });
await client.v1.statuses.$select(deleted.id).remove();
const gone = await refused(client.v1.statuses.$select(deleted.id).fetch());
const app = await anonymous.v1.apps.create({ clientName: "test", redirectUris: "urn:ietf:wg:oauth:2.0:oob", scopes: "read write" });

writeFileSync(1, JSON.stringify({
  acct: account.acct, characters: instance.configuration.statuses.maxCharacters, perURL: instance.configuration.statuses.charactersReservedPerUrl, read: found,
  written: [await read(text.id), await read(reply.id), await read(film.id)], repeated: again.id, replies: context.descendants.map((p) => p.id),
  listed, refused: [used, long, gone], app: Boolean(app.clientId && app.clientSecret),
}));
