"""The formulas of the learners' files as LaTeX, which the site draws as MathML.

An editor shows a formula as plain text, a page shows it as mathematics. Each key is a formula of a
lesson in the words of its file; a formula of several lines has a LaTeX line for each.
"""

__all__ = ["FORMULAS", "as_latex"]

FORMULAS = {
    "Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V (equation 1)": (
        r"\mathrm{Attention}(Q, K, V)"
        r" = \mathrm{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V \quad (1)",
    ),
    "MultiHead(Q, K, V) = Concat(head_1, …, head_h) Wᴼ"
    " head_i = Attention(Q Wᵢ^Q, K Wᵢ^K, V Wᵢ^V)": (
        r"\mathrm{MultiHead}(Q, K, V)"
        r" = \mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_h) \, W^O",
        r"\mathrm{head}_i = \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)",
    ),
    "PE(p, 2i) = sin(p / 10000^(2i / d_model))"
    " PE(p, 2i + 1) = cos(p / 10000^(2i / d_model)), i = 0, 1, …, d_model/2 - 1": (
        r"\mathrm{PE}(p, 2i) = \sin\left(p / 10000^{2i / d_\mathrm{model}}\right)",
        r"\mathrm{PE}(p, 2i + 1) = \cos\left(p / 10000^{2i / d_\mathrm{model}}\right)",
        r"i = 0, 1, \dots, d_\mathrm{model} / 2 - 1",
    ),
    "LayerNorm(x) = (x - mean) / √(variance + ε) · weight + bias over the features of x": (
        r"\mathrm{LayerNorm}(x) = \frac{x - \mathrm{mean}}{\sqrt{\mathrm{variance} + \varepsilon}}"
        r" \cdot \mathrm{weight} + \mathrm{bias}",
        r"\text{over the features of } x",
    ),
    "FFN(x) = max(0, x W₁ + b₁) W₂ + b₂ (equation 2)": (
        r"\mathrm{FFN}(x) = \max(0, x W_1 + b_1) \, W_2 + b_2 \quad (2)",
    ),
    "loss of one label = (1 − ε) (−log p_label) + ε · mean over the vocabulary of (−log p_v)": (
        r"\text{loss of one label} = (1 - \varepsilon) \, (-\log p_\mathrm{label})",
        r"+ \; \varepsilon \cdot \text{mean over the vocabulary of } (-\log p_v)",
    ),
    "rate = d_model^−0.5 · min(update^−0.5, update · warmup^−1.5) (equation 3)": (
        r"\mathrm{rate} = d_\mathrm{model}^{-0.5} \cdot"
        r" \min(\mathrm{update}^{-0.5}, \; \mathrm{update} \cdot \mathrm{warmup}^{-1.5})"
        r" \quad (3)",
    ),
    "mean = β₁ · mean + (1 − β₁) · g"
    " square = β₂ · square + (1 − β₂) · g²"
    " weight = weight − rate · mean / (1 − β₁ᵗ) / (√(square / (1 − β₂ᵗ)) + ϵ)": (
        r"\mathrm{mean} = \beta_1 \cdot \mathrm{mean} + (1 - \beta_1) \cdot g",
        r"\mathrm{square} = \beta_2 \cdot \mathrm{square} + (1 - \beta_2) \cdot g^2",
        r"\mathrm{weight} = \mathrm{weight} - \mathrm{rate} \cdot"
        r" \frac{\mathrm{mean} / (1 - \beta_1^t)}"
        r"{\sqrt{\mathrm{square} / (1 - \beta_2^t)} + \epsilon}",
    ),
    "score(Y) = log P(Y | X) / lp(Y), lp(Y) = ((5 + |Y|) / 6)^α": (
        r"\mathrm{score}(Y) = \frac{\log P(Y \mid X)}{\mathrm{lp}(Y)}, \quad"
        r" \mathrm{lp}(Y) = \left(\frac{5 + |Y|}{6}\right)^\alpha",
    ),
}


def as_latex(text: str) -> tuple[str, ...]:
    """The LaTeX lines of a formula that a lesson has as plain text; none if it is no formula."""
    return FORMULAS.get(" ".join(text.split()), ())
