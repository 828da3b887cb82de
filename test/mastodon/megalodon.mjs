// Reads and writes posts with megalodon, which has no idempotency keys. The input and the result are described in
// mastodon_test.go.
import { createReadStream, readFileSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import generator from "megalodon";

const input = JSON.parse(readFileSync(0, "utf8"));
const client = generator("mastodon", input.url, input.token);

async function read(id) {
  const { data: post } = await client.getStatus(id);
  const { data: source } = await client.getStatusSource(id);
  return {
    id, text: source.text, html: post.content, visibility: post.visibility, spoiler: post.spoiler_text, language: post.language ?? "", sensitive: post.sensitive, inReplyTo: post.in_reply_to_id ?? "",
    files: post.media_attachments.map((f) => ({ type: f.type, description: f.description ?? "", x: f.meta.focus.x, y: f.meta.focus.y })),
  };
}

// upload uploads a file and waits until the server has processed it.
async function upload(path, options) {
  const { data: made } = await client.uploadMedia(createReadStream(path), options);
  while ((await client.getMedia(made.id)).status === 206) await setTimeout(50);
  return made;
}

async function refused(request) {
  try {
    await request;
  } catch (error) {
    return error.response?.status ?? -1;
  }
  return 0;
}

const { data: account } = await client.verifyAccountCredentials();
const { data: instance } = await client.getInstance();
const found = [];
for (const id of input.read) found.push(await read(id));

const { data: text } = await client.postStatus(input.text, { visibility: "unlisted", language: "en" });
const image = await upload(input.image, { description: "a picture", focus: "-0.50,0.25" });
const { data: reply } = await client.postStatus("with a picture", { media_ids: [image.id], in_reply_to_id: text.id, spoiler_text: "a picture follows", sensitive: true });
const video = await upload(input.video);
const { data: film } = await client.postStatus("", { media_ids: [video.id] });
const { data: context } = await client.getStatusContext(text.id);

const listed = [];
for (let last = ""; ; ) {
  const { data: page } = await client.getAccountStatuses(account.id, { limit: 2, exclude_reblogs: true, ...(last && { max_id: last }) });
  if (page.length === 0) break;
  listed.push(...page.map((p) => p.id));
  last = page.at(-1).id;
}
const used = await refused(client.postStatus("again", { media_ids: [image.id] }));
const long = await refused(client.postStatus("a".repeat(501)));
const { data: deleted } = await client.postStatus("deleted at once");
await client.deleteStatus(deleted.id);
const gone = await refused(client.getStatus(deleted.id));
const app = await generator("mastodon", input.url).createApp("test", { scopes: ["read", "write"], redirect_uris: "urn:ietf:wg:oauth:2.0:oob" });

writeFileSync(1, JSON.stringify({
  acct: account.acct, characters: instance.configuration.statuses.max_characters, perURL: instance.configuration.statuses.characters_reserved_per_url ?? 23, read: found,
  written: [await read(text.id), await read(reply.id), await read(film.id)], repeated: "", replies: context.descendants.map((p) => p.id),
  listed, refused: [used, long, gone], app: Boolean(app.client_id && app.client_secret),
}));
