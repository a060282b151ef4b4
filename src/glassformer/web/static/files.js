// A file: chosen here, translated by the server, and offered to be saved.

export function offerFiles({ input, status, asker, languages }) {
  const say = (text, error = false) => {
    status.hidden = false;
    status.classList.toggle("error", error);
    status.replaceChildren(text);
  };
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    input.value = ""; // the same file may be chosen again
    say(`${file.name} is being translated …`);
    try {
      const { source, target } = languages();
      const name = await asker.translateFile(file, source, target);
      const link = document.createElement("a");
      Object.assign(link, { href: `download_file/${name}`, download: "" });
      link.textContent = `Save the translation of ${file.name}`;
      say(link);
      link.focus();
    } catch (error) {
      say(`${file.name}: ${error.message}`, true);
    }
  });
}
