// Sends texts and files to this page's server: of the texts the newest one only.

import { asked, post } from "./look/server.js";

let running = null;

export const stop = () => running?.abort(); // the server notices, and drops what still waits

// `progress` hears of the parts of a long answer, in a page that is one file.
export function translation(request, progress) {
  stop();
  running = new AbortController();
  return post("api/v1/translate", request, { signal: running.signal, progress });
}

export async function fileTranslation(file, source, target) {
  const body = new FormData();
  Object.entries({ file, source, target }).forEach(([name, value]) => body.append(name, value));
  const answer = await asked("translate_file", { method: "POST", body });
  return { name: answer.translatedFileUrl.split("/").pop(), doubts: answer.doubts ?? [] };
}
