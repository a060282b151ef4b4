"""Serve a translator on this machine, and ask it as a program does.

python examples/serve_and_ask.py demo/en-de "Monday, March 4, 2030"
"""

import json
import re
import subprocess
import sys
from urllib.request import Request, urlopen

directory, text = sys.argv[1:]
command = ["glassformer", "serve", directory, "--port", "0"]  # 0 means any free port
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
    address = next(found[0] for line in server.stdout if (found := re.search(r"http://\S+", line)))
    question = {"q": text, "source": "en", "target": "de", "alternatives": 2}
    header = {"Content-Type": "application/json"}
    body = json.dumps(question).encode()
    with urlopen(Request(f"{address.rstrip('/')}/translate", body, header)) as reply:
        answer = json.load(reply)
    print(f"{answer['translatedText']}; also {', '.join(answer['alternatives'])}")
    server.terminate()  # it answers the open requests, and ends
