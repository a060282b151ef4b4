// A file: chosen or dropped here, translated by the server, and offered to be saved.

import { fileTranslation } from "./ask.js";

export function offerFiles({ input, status, languages }) {
  const say = (text, error = false) => {
    status.classList.toggle("error", error);
    status.replaceChildren(text);
  };
  const send = async (file) => {
    if (!file) return;
    if (!file.size) return say(`${file.name} is empty.`, true);
    say(`${file.name} is being translated …`);
    try {
      const { source, target } = languages();
      const { name, doubts } = await fileTranslation(file, source, target);
      const link = document.createElement("a");
      Object.assign(link, { href: `download_file/${name}`, download: "" });
      link.textContent = `Save the translation of ${file.name}`;
      say(link);
      status.append(...doubts.map((doubt) => ` · ${doubt}`));
      link.focus();
    } catch (error) {
      say(`${file.name}: ${error.message.replace(/^Invalid request: /, "")}`, true);
    }
  };
  input.addEventListener("change", () => {
    send(input.files[0]);
    input.value = ""; // the same file may be chosen again
  });
  const holdsFile = (event) => event.dataTransfer.types.includes("Files"); // text is no file
  document.addEventListener("dragover", (event) => holdsFile(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!holdsFile(event)) return;
    event.preventDefault(); // the browser would leave the page, and open the file
    send(event.dataTransfer.files[0]);
  });
}
