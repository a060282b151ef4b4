"""The numbers of a worked attention are those of the attention itself."""

import re

import torch

from glassformer import scaled_dot_product_attention, worked_attention


def test_the_last_lines_are_the_output():
    torch.manual_seed(3)
    query, keys, values = torch.randn(4), torch.randn(5, 4), torch.randn(5, 2)
    mask = torch.tensor([True, False, True, True, False])
    lines = worked_attention(query, keys, values, mask).splitlines()
    output, _ = scaled_dot_product_attention(query[None], keys, values, mask[None])
    results = [float(line.rsplit("= ", 1)[1]) for line in lines if line.startswith("output")]
    torch.testing.assert_close(torch.tensor(results), output.flatten(), atol=0.01, rtol=0.01)
    hidden = [place for place, line in enumerate(lines) if "hidden by the mask" in line]
    assert hidden == [1, 4]
    weights = [
        float(weight) for weight in re.findall(r"= ([\d.e-]+)$", "\n".join(lines[:4:2]), re.M)
    ]
    assert 0 < sum(weights) < 1
