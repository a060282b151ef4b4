"""The public names, each imported from its home.

``__init__.py`` reads this table at run time, and type checkers and editors read it too.
"""

from glassformer.config import ModelConfig as ModelConfig, presets as presets
from glassformer.data.batches import pad_rows as pad_rows
from glassformer.data.subword_training import train_tokenizer as train_tokenizer
from glassformer.data.tokenizer import Tokenizer as Tokenizer
from glassformer.data.word_vectors import read_vectors as read_vectors
from glassformer.data.words import pharaoh as pharaoh
from glassformer.decoding.beam import beam_search as beam_search
from glassformer.decoding.constraints import OutputRules as OutputRules
from glassformer.decoding.greedy import greedy as greedy
from glassformer.decoding.sampling import Sampling as Sampling, sample as sample
from glassformer.evaluation import (
    alignment_error_rate as alignment_error_rate,
    corpus_scores as corpus_scores,
    evaluate as evaluate,
)
from glassformer.support.displays import Table as Table
from glassformer.tools.inspection.ablation import ablated as ablated
from glassformer.tools.inspection.capture import capture as capture
from glassformer.tools.inspection.figure1 import figure1 as figure1
from glassformer.tools.inspection.plots.figure2 import (
    attention_shapes as attention_shapes,
    plot_figure2 as plot_figure2,
)
from glassformer.tools.inspection.plots.tensors import (
    plot_attention as plot_attention,
    plot_mask as plot_mask,
    plot_positions as plot_positions,
    plot_similarity as plot_similarity,
)
from glassformer.tools.inspection.plots.schedule import plot_schedule as plot_schedule
from glassformer.tools.inspection.trace.build import trace as trace
from glassformer.tools.inspection.trace.schema import (
    Changes as Changes,
    Head as Head,
    Query as Query,
)
from glassformer.model.attention import (
    MultiHeadAttention as MultiHeadAttention,
    fused_attention as fused_attention,
    masked_softmax as masked_softmax,
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from glassformer.model.blocks import FeedForward as FeedForward, ResidualBlock as ResidualBlock
from glassformer.model.cache import Memory as Memory
from glassformer.model.decoder import Decoder as Decoder, DecoderBlock as DecoderBlock
from glassformer.model.embeddings import ScaledEmbedding as ScaledEmbedding
from glassformer.model.encoder import Encoder as Encoder, EncoderBlock as EncoderBlock
from glassformer.model.masks import (
    padding_mask as padding_mask,
    subsequent_mask as subsequent_mask,
    target_mask as target_mask,
)
from glassformer.model.positions import (
    PositionalEncoding as PositionalEncoding,
    sinusoidal_positions as sinusoidal_positions,
)
from glassformer.model.transformer import Transformer as Transformer
from glassformer.parts import FAST as FAST, PLAIN as PLAIN, Parts as Parts
from glassformer.training.loss import (
    label_smoothed_cross_entropy as label_smoothed_cross_entropy,
    token_accuracy as token_accuracy,
)
from glassformer.training.schedule import noam_schedule as noam_schedule
from glassformer.training.setup.options import TrainConfig as TrainConfig
from glassformer.training.train import train as train
from glassformer.translator import Translation as Translation, Translator as Translator

__version__: str
