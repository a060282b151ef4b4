// A frame with one panel of `glassformer look` takes the height of its panel.
addEventListener("message", ({ data, source }) => {
  for (const frame of document.querySelectorAll("iframe.look")) {
    if (frame.contentWindow === source && data.height > 0) frame.style.height = `${data.height}px`;
  }
});
