"""`torch.nn.functional`: layers and losses as functions. A loss takes what is predicted first, what is true second."""

from levels import low_level as low
from levels.low_level import nn
from levels.mid_level import losses
from levels_more.missing import room
from levels_more.torch import reduced_losses
from levels_more.torch.recorded import recorded
from levels_more.torch.recorded_layers import batch_norm, dropout, layer_norm, linear, rms_norm  # noqa: F401
from levels_more.torch.reduced_losses import loss

from .. import functions

LOSSES = {
    "mse_loss": loss(lambda x, y: losses.squared_error(y, x)), "l1_loss": loss(lambda x, y: low.abs(x - y)),
    "huber_loss": loss(lambda x, y, delta=1.0: losses.Huber(delta).call(y, x)),
    "smooth_l1_loss": loss(lambda x, y, beta=1.0: losses.Huber(beta).call(y, x) / beta),
    "binary_cross_entropy": loss(reduced_losses.of_probabilities), "kl_div": loss(reduced_losses.divergence),
    "binary_cross_entropy_with_logits": loss(reduced_losses.of_logits),
    "soft_margin_loss": loss(lambda x, y: nn.softplus(-y * x)), "hinge_embedding_loss": loss(reduced_losses.hinge),
    "poisson_nll_loss": loss(reduced_losses.of_counts), "gaussian_nll_loss": reduced_losses.of_normals,
    "margin_ranking_loss": reduced_losses.ranking, "triplet_margin_loss": reduced_losses.triplet, "cosine_embedding_loss": reduced_losses.of_angles,
    "nll_loss": reduced_losses.of_log_probabilities, "cross_entropy": reduced_losses.of_classes,
}  # fmt: skip
functions.FUNCTIONS.update({name: recorded(name, function) for name, function in LOSSES.items()})
__getattr__, __dir__ = room("torch.nn.functional", globals(), functions.FUNCTIONS)
