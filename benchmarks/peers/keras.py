"""A Transformer of Keras's layers on TensorFlow; the update is one graph.

Post-norm and tied as the others. "compiled" hands the graph to XLA, "bf16" is Keras's policy
``mixed_bfloat16``. The graph takes any shape, so it is traced once.
"""

import os
from typing import Any

from benchmarks.peers.measure import Arrays, Clock, job, run_updates

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

__all__ = ["Block", "Translation"]


class Block(keras.layers.Layer):
    """An encoder or decoder block of Keras's layers; each sublayer with residual and norm."""

    def __init__(self, sizes: dict[str, Any], *, decoder: bool) -> None:
        super().__init__()
        width, heads, self.decoder = sizes["d_model"], sizes["num_heads"], decoder
        self.attend = layers.MultiHeadAttention(heads, width // heads)
        self.read = layers.MultiHeadAttention(heads, width // heads) if decoder else None
        self.inner = layers.Dense(sizes["d_ff"], activation="relu")
        self.outer = layers.Dense(width)
        self.norms = [layers.LayerNormalization(epsilon=1e-5) for _ in range(2 + decoder)]
        self.drops = [layers.Dropout(sizes["dropout"]) for _ in range(2 + decoder)]

    def call(self, x: Any, mask: Any, memory: Any = None, memory_mask: Any = None) -> Any:
        attended = self.attend(
            x, x, attention_mask=mask, use_causal_mask=self.decoder, training=True
        )
        x = self.norms[0](x + self.drops[0](attended, training=True))
        if self.read is not None:
            attended = self.read(x, memory, attention_mask=memory_mask, training=True)
            x = self.norms[1](x + self.drops[1](attended, training=True))
        output = self.outer(self.inner(x))
        return self.norms[-1](x + self.drops[-1](output, training=True))


class Translation(keras.Model):
    """From ids to logits, with one embedding matrix used three times."""

    def __init__(self, sizes: dict[str, Any]) -> None:
        super().__init__()
        self.width, self.pad_id = sizes["d_model"], sizes["pad_id"]
        self.embedding = layers.Embedding(sizes["vocab_size"], self.width)
        self.drop = layers.Dropout(sizes["dropout"])
        self.encoder = [Block(sizes, decoder=False) for _ in range(sizes["num_encoder_layers"])]
        self.decoder = [Block(sizes, decoder=True) for _ in range(sizes["num_decoder_layers"])]
        angles = np.arange(sizes["max_length"])[:, None] / 10000 ** (
            np.arange(0, self.width, 2) / self.width
        )
        waves = np.stack((np.sin(angles), np.cos(angles)), axis=-1).reshape(len(angles), -1)
        self.positions = tf.constant(waves, self.compute_dtype)

    def call(self, source: Any, target: Any) -> Any:
        seen = ops.expand_dims(source != self.pad_id, 1)  # (batch, 1, src_len)
        memory = self.embedded(source)
        for block in self.encoder:
            memory = block(memory, seen)
        states = self.embedded(target)
        for block in self.decoder:
            states = block(states, None, memory, seen)
        weight = ops.cast(self.embedding.embeddings, states.dtype)
        return ops.matmul(states, ops.transpose(weight))

    def embedded(self, tokens: Any) -> Any:
        x = self.embedding(tokens) * self.width**0.5 + self.positions[: ops.shape(tokens)[1]]
        return self.drop(x, training=True)


def _loss(logits: Any, labels: Any) -> Any:
    """Label-smoothed cross-entropy without a matrix of targets, the mean over real tokens."""
    logits = ops.cast(logits, "float32")
    total = ops.logsumexp(logits, axis=-1)
    of_label = ops.take_along_axis(logits, labels[..., None], axis=-1)[..., 0]
    smoothing = job["smoothing"]
    lost = total - (1 - smoothing) * of_label - smoothing * ops.mean(logits, axis=-1)
    real = ops.cast(labels != job["model"]["pad_id"], "float32")
    return ops.sum(lost * real) / ops.sum(real)


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
    tf.config.threading.set_inter_op_parallelism_threads(job["threads"])
    keras.utils.set_random_seed(job["seed"])
    if job["precision"] == "bf16":
        keras.mixed_precision.set_global_policy("mixed_bfloat16")
    model = Translation(job["model"])
    optimiser = keras.optimizers.Adam(
        beta_1=0.9, beta_2=0.98, epsilon=1e-9, global_clipnorm=job["clip"]
    )
    ids = tf.TensorSpec((None, None), tf.int64)
    model(tf.ones((1, 2), tf.int64), tf.ones((1, 2), tf.int64))
    optimiser.build(model.trainable_variables)

    @tf.function(input_signature=[ids, ids, ids], jit_compile=job["compiled"])
    def graph(source: Any, target: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = _loss(model(source, target), labels)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimiser.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    def update(batch: list[Any], rate: float) -> Any:
        optimiser.learning_rate.assign(rate)
        return graph(*batch)

    def prepare(arrays: Arrays) -> list[Any]:
        with tf.device("CPU:0"):  # an update copies it to a GPU
            return [tf.constant(part) for part in arrays]

    on_gpu = Clock(wait=tf.test.experimental.sync_devices, peak=_gpu_peak)

    run_updates(
        prepare,
        update,
        library=f"keras {keras.__version__}, tensorflow {tf.__version__}",
        parameters=sum(int(np.prod(weight.shape)) for weight in model.trainable_variables),
        clock=Clock() if job["device"] == "cpu" else on_gpu,
    )


def _gpu_peak() -> int:
    return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])


if __name__ == "__main__":
    main()
