// Sends texts and files to this page's server: of the texts the newest one only.

import { asked, post } from "./look/server.js";

export function createAsker() {
  let running = null;
  return {
    stop: () => running?.abort(),
    async translateFile(file, source, target) {
      const body = new FormData();
      Object.entries({ file, source, target }).forEach(([name, value]) => body.append(name, value));
      const answer = await asked("translate_file", { method: "POST", body });
      return answer.translatedFileUrl.split("/").pop();
    },
    translate(request) {
      running?.abort(); // the server notices, and drops the segments that still wait
      running = new AbortController();
      return post("api/v1/translate", request, { signal: running.signal });
    },
  };
}
