// Draws a text as one span for each segment, with one span for each aligned word in it.
// Offsets count characters, but a JavaScript string counts UTF-16 units.

export function paint(box, text, segments, side) {
  const letters = [...text];
  const parts = [];
  let end = 0;
  segments.forEach((segment, place) => {
    const [start, stop] = segment[side];
    parts.push(letters.slice(end, start).join(""), segmentOf(letters, segment, side, place));
    end = stop;
  });
  parts.push(letters.slice(end).join(""));
  // An empty last line needs a character to have a height.
  if (side === "source" && text.endsWith("\n")) parts.push("\u200b");
  box.replaceChildren(...parts);
}

function segmentOf(letters, segment, side, place) {
  const element = document.createElement("span");
  element.className = segment.doubts.length && side === "target" ? "segment doubtful" : "segment";
  element.dataset.segment = String(place);
  let [end] = segment[side];
  for (const [start, stop] of wordsOf(segment.links, side)) {
    if (start < end) continue; // it overlaps the word before
    const word = document.createElement("span");
    word.className = "word";
    word.dataset.word = `${start},${stop}`;
    word.textContent = letters.slice(start, stop).join("");
    element.append(letters.slice(end, start).join(""), word);
    end = stop;
  }
  element.append(letters.slice(end, segment[side][1]).join(""));
  return element;
}

// Each linked word once, in the order of the text.
function wordsOf(links, side) {
  const words = new Map(links.map((link) => [link[side].join(), link[side]]));
  return [...words.values()].sort((a, b) => a[0] - b[0]);
}
