"""PUL-CPBF (Li 2024), for scenes and for images: a fence of weak classifiers tells posteriors.

Cross-entropy that takes unlabeled as negatives and counts positives α times is 0.5 where
P(y = 1 | x) is π / α: α moves the boundary. So a fence of classifiers, each with its own α, tells
between which posteriors an unlabeled pixel or item lies; its label is drawn accordingly, anew at
every step, and the classifier, which begins where the fence ended, learns from labels so drawn.
"""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from thonecls.images.steps import step_generator, with_parts
from thonecls.method.checkpoint import State
from thonecls.method.config import TrainConfig
from thonecls.method.loop import run
from thonecls.method.procedure import Procedure, StepLosses
from thonecls.method.taylor import positive_loss
from thonecls.methods.heads import TwoHeadedData, TwoHeads

FENCE = 9  # weak classifiers, with boundaries at posteriors of 0.1 to 0.9
MEMORY = "pul-cpbf"  # in the memory: the weights with which the warm-up ended
LABELLED = 0.025  # what labelled positives weigh, against all unlabeled: 100 of 4,000


def with_fence(data: Any) -> TwoHeadedData[Any]:
    """The data with networks whose second head is the fence, by its logits."""
    return TwoHeadedData(data, partial(nn.Linear, out_features=FENCE))


def boundaries(count: int = FENCE) -> Tensor:
    """The posteriors at which the fence's classifiers are 0.5: (count,).

    >>> boundaries(3).tolist()
    [0.25, 0.5, 0.75]
    """
    return torch.arange(1, count + 1) / (count + 1)


def fence_loss(positive: Tensor, unlabeled: Tensor, prior: float) -> Tensor:
    """Mean over the fence of α E_p[-log f] + E_u[-log(1 - f)]: logits (n_p, k) and (n_u, k).

    α = π / boundary: f = α r / (1 + α r) minimises it, r being P(y = 1 | x) / π.

    >>> round(fence_loss(torch.zeros(1, 1), torch.zeros(2, 1), 0.5).item(), 4)  # α 1: 2 log 2
    1.3863
    """
    penalties = prior / boundaries(positive.shape[1]).to(positive)
    return (penalties * softplus(-positive).mean(0) + softplus(unlabeled).mean(0)).mean()


def posterior(fence: Tensor) -> Tensor:
    """The middle of the two boundaries that a row lies between: (n, k) logits -> (n,).

    >>> posterior(torch.tensor([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0]])).tolist()
    [0.1666666716337204, 0.5, 0.8333333134651184]
    """
    passed = (fence > 0).sum(1)
    return (passed + 0.5) / (fence.shape[1] + 1)


def _fence_at_the_end(state: State) -> TwoHeads:
    """The network as it was when the warm-up ended; its weights are remembered."""
    if MEMORY not in state.memory:
        state.memory[MEMORY] = parameters_to_vector(state.student.parameters()).detach().clone()
    net = copy.deepcopy(state.student).requires_grad_(False)
    vector_to_parameters(state.memory[MEMORY], net.parameters())
    assert isinstance(net, TwoHeads)
    return net


def _step_losses(
    state: State, data: TwoHeadedData[Any], batch: Any, config: TrainConfig
) -> StepLosses:
    """The fence's loss while warming up; then the classifier's, on labels that the fence draws."""
    student = state.student
    assert isinstance(student, TwoHeads)
    assert config.prior is not None
    features = data.features(student, batch)
    positive, unlabeled = (student.readout(part) for part in features)
    if state.epoch < config.warmup:
        loss = fence_loss(student.second(features[0]), student.second(features[1]), config.prior)
        return with_parts(loss, positive, unlabeled, torch.zeros_like(loss))
    with torch.no_grad():
        fence = _fence_at_the_end(state)
        likely = posterior(fence.second(data.features(fence, batch)[1]))
        random = torch.rand(len(likely), generator=step_generator(state)).to(likely)
        drawn = (random < likely).to(unlabeled.dtype)
    loss = binary_cross_entropy_with_logits(unlabeled, drawn) + LABELLED * positive_loss(positive)
    return with_parts(loss, positive, unlabeled, torch.zeros_like(loss))


CPBF: Procedure[Any] = Procedure(name="pul-cpbf", step_losses=_step_losses)


def train(data: Any, **how: Any) -> Any:
    """Train on a scene; how: as for `run`."""
    return run(with_fence(data), procedure=CPBF, **how)
