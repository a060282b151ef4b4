"""The server and its pages: a translator for people, addresses for programs (extra ``serve``)."""
