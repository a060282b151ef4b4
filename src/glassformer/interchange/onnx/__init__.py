"""ONNX: exports a bundle for transformers.js, and for any program that runs ONNX graphs."""
