"""The network: a page for people, addresses for programs (extra ``serve``)."""
