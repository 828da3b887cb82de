// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Crops a picture that is about to be posted, in the dialog #crop: README.md. The result is another file, which upload.js uploads.

const dialog = document.getElementById("crop"), canvas = dialog.querySelector("canvas");
const field = (name) => dialog.querySelector(`[name=${name}]`);
const context = canvas.getContext("2d");

// tiny is less than what makes a difference in pixels.
const tiny = 1e-6;

// item is the picture's list item, picture its image, and scale the number of canvas pixels per image pixel.
let item, picture, scale;

// frame returns the rectangle that remains after cropping, in image pixels.
function frame() {
  const { naturalWidth: wide, naturalHeight: high } = picture, { min, max } = canvas.dataset;
  const chosen = Number(dialog.querySelector("[name=shape]:checked").value);
  const shape = chosen || Math.min(Math.max(wide / high, min), max);
  const part = field("size").value / 100;
  const width = Math.max(1, Math.floor(Math.min(wide, high * shape) * part + tiny));
  // Rounded to the inside of the bounds.
  const exact = width / shape, height = Math.max(1, Math.min(high, shape < 1 ? Math.floor(exact + tiny) : Math.ceil(exact - tiny)));
  return { x: Math.round(((wide - width) * field("x").value) / 100), y: Math.round(((high - height) * field("y").value) / 100), width, height };
}

function draw() {
  const { x, y, width, height } = frame();
  context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  context.fillStyle = "rgb(0 0 0 / 60%)";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(picture, x, y, width, height, x * scale, y * scale, width * scale, height * scale);
  context.strokeStyle = "white";
  context.lineWidth = 2;
  context.strokeRect(x * scale + 1, y * scale + 1, width * scale - 2, height * scale - 2);
  dialog.querySelector("output").textContent = `${width} × ${height} pixels`;
}

const side = 640;

document.addEventListener("crop", async ({ target }) => {
  item = target.closest("[data-files] > *");
  picture = item.querySelector("[data-preview] img");
  await picture?.decode().catch(() => (picture = null));
  if (!picture) return;
  scale = Math.min(1, side / Math.max(picture.naturalWidth, picture.naturalHeight));
  canvas.width = Math.max(1, picture.naturalWidth * scale);
  canvas.height = Math.max(1, picture.naturalHeight * scale);
  dialog.querySelector("form").reset();
  dialog.showModal();
  draw();
});

dialog.addEventListener("input", draw);

// --- The mouse or a finger moves the frame; the keyboard has the sliders.

let grabbed;

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  grabbed = { left: event.clientX, top: event.clientY, x: Number(field("x").value), y: Number(field("y").value) };
});

canvas.addEventListener("pointermove", ({ clientX, clientY }) => {
  if (!grabbed) return;
  const { width, height } = frame(), box = canvas.getBoundingClientRect();
  // A slider is at the share of the room that the frame leaves.
  const slide = (name, moved, whole, part) => whole > part && (field(name).value = grabbed[name] + (100 * moved) / (whole - part));
  slide("x", ((clientX - grabbed.left) * picture.naturalWidth) / box.width, picture.naturalWidth, width);
  slide("y", ((clientY - grabbed.top) * picture.naturalHeight) / box.height, picture.naturalHeight, height);
  draw();
});

for (const type of ["pointerup", "pointercancel"]) canvas.addEventListener(type, () => (grabbed = undefined));

dialog.addEventListener("close", async () => {
  const crops = dialog.returnValue === "crop";
  dialog.returnValue = "";
  if (!crops) return;
  const { x, y, width, height } = frame();
  const cut = Object.assign(document.createElement("canvas"), { width, height });
  cut.getContext("2d").drawImage(picture, x, y, width, height, 0, 0, width, height);
  const name = item.querySelector("[data-file]").textContent, type = /\.(png|webp)$/i.test(name) ? "image/png" : "image/jpeg";
  const blob = await new Promise((done) => cut.toBlob(done, type, 0.92));
  const file = new File([blob], name.replace(/(\.\w+)?$/, type === "image/png" ? ".png" : ".jpg"), { type });
  const list = item.parentElement, place = [...list.children].indexOf(item);
  list.closest("[data-upload]").dispatchEvent(new CustomEvent("files", { bubbles: true, detail: { file, replaces: item } }));
  list.children[place].querySelector("[data-crop]").focus();
});
