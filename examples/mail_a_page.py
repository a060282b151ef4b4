"""Write a mail with a translator in it: one page, which translates in the reader's browser.

python examples/mail_a_page.py demo/en-de you@example.org; open translator.eml in a mail program
"""

import subprocess
import sys
import tempfile
from email.message import EmailMessage
from pathlib import Path

directory, receiver = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "translate.html"
    subprocess.run(["glassformer", "export", directory, page, "--to", "page"], check=True)
    content = page.read_bytes()
mail = EmailMessage()
mail["To"], mail["Subject"], mail["X-Unsent"] = receiver, "A translator", "1"  # a draft
mail.set_content("Save the page and open it in a browser. It works without a network.")
mail.add_attachment(content, maintype="text", subtype="html", filename="translate.html")
Path("translator.eml").write_bytes(bytes(mail))
print(f"translator.eml: {len(content) / 1e6:.1f} MB for {receiver}")
