"""Owns the measure of how near a configuration is to a singularity."""

from collections.abc import Sequence

import numpy as np

from awp_ros_bridge.kinematics.chain import Chain, Vector


def smallest_singular_value(chain: Chain, q_rad: Sequence[float] | Vector) -> float:
    """
    Measure the distance from a singularity.

    The smallest singular value of the tip's Jacobian, with one metre of translation weighing as
    much as one radian of rotation: the slowest tip motion (m/s and rad/s together) that one unit
    of joint speed can produce. Zero at a singularity; chains with fewer than six joints are
    measured in the directions that they have.
    """
    values = np.linalg.svd(chain.tip_jacobian(q_rad, local=True), compute_uv=False)
    return float(values[-1])
