"""Word alignment: links from target words to source words, and the heads that align best."""
