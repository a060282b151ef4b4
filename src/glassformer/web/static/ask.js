// Sends requests to this page's server: the newest one only, with the key if the server needs one.

const KEY = "glassformer-key"; // the browser keeps it until the tab closes

export function createAsker() {
  let running = null;
  const headers = () => {
    const key = sessionStorage.getItem(KEY);
    return key ? { Authorization: `Bearer ${key}` } : {};
  };
  return {
    get: (path) => answered(fetch(path, { headers: headers() })),
    hasKey: () => Boolean(sessionStorage.getItem(KEY)),
    useKey: (key) => (key ? sessionStorage.setItem(KEY, key) : sessionStorage.removeItem(KEY)),
    stop: () => running?.abort(),
    async translateFile(file, source, target) {
      const body = new FormData();
      Object.entries({ file, source, target }).forEach(([name, value]) => body.append(name, value));
      const request = fetch("translate_file", { method: "POST", headers: headers(), body });
      const answer = await answered(request);
      return answer.translatedFileUrl.split("/").pop();
    },
    translate(request) {
      running?.abort(); // the server notices, and drops the segments that still wait
      running = new AbortController();
      return answered(
        fetch("api/v1/translate", {
          method: "POST",
          headers: { ...headers(), "Content-Type": "application/json" },
          body: JSON.stringify(request),
          signal: running.signal,
        }),
      );
    },
  };
}

async function answered(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer: is it still running?");
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const error = new Error(answer?.error ?? `The server answered ${response.status}.`);
  error.key = /API key/.test(error.message);
  throw error;
}
