"""Owns the configuration file: its model, its loading, its checks."""

from awp_ros_bridge.config.actions import ActionConfig, AdapterInfo, Adapters
from awp_ros_bridge.config.base import StrictModel
from awp_ros_bridge.config.channels import (
    Channel,
    ChannelFault,
    EmbodimentStateChannel,
    Encoders,
    FramesConfig,
    ImageConfig,
    TF_CHANNEL,
    TopicChannel,
)
from awp_ros_bridge.config.embodiments import (
    DescriptionUnread,
    Embodiment,
    Kinematics,
    UrdfFile,
    UrdfTopic,
)
from awp_ros_bridge.config.envelope import (
    Envelope,
    ForceSensor,
    MeasuredByJoints,
    MeasuredByOdometry,
    MeasuredByTf,
    Spatial,
)
from awp_ros_bridge.config.input_spec import (
    ByCompanion,
    ByMessage,
    Condition,
    InputSpec,
    JointParts,
    Part,
    Rule,
)
from awp_ros_bridge.config.load import directory_of, load, load_text, LoadResult
from awp_ros_bridge.config.model import (
    AuditConfig,
    BridgeConfig,
    ResetService,
    SimulationConfig,
    WorldConfig,
)
from awp_ros_bridge.config.problems import Problem, Severity
from awp_ros_bridge.config.rest import (
    AtRest,
    BodyRest,
    FramePair,
    MeasuredRest,
    OdometryRest,
    TfRest,
    UnmeasuredRest,
)
from awp_ros_bridge.config.safety import SafetyConfig
from awp_ros_bridge.config.safety_inputs import AnyInput, SafetyInput
from awp_ros_bridge.config.server import ServerConfig, SessionConfig, TlsConfig
from awp_ros_bridge.config.speed_scaling import SpeedScaling
from awp_ros_bridge.config.stop_steps import CallService, Park, PublishZeros
from awp_ros_bridge.config.token_file import (
    changing,
    read_tokens,
    ScopeName,
    TokenEntry,
    TokensRead,
    write_tokens,
)

__all__ = [
    'TF_CHANNEL',
    'ActionConfig',
    'AdapterInfo',
    'Adapters',
    'AnyInput',
    'AtRest',
    'AuditConfig',
    'BodyRest',
    'BridgeConfig',
    'ByCompanion',
    'ByMessage',
    'CallService',
    'Channel',
    'ChannelFault',
    'Condition',
    'DescriptionUnread',
    'Embodiment',
    'EmbodimentStateChannel',
    'Encoders',
    'Envelope',
    'ForceSensor',
    'FramePair',
    'FramesConfig',
    'ImageConfig',
    'InputSpec',
    'JointParts',
    'Kinematics',
    'LoadResult',
    'MeasuredByJoints',
    'MeasuredByOdometry',
    'MeasuredByTf',
    'MeasuredRest',
    'OdometryRest',
    'Park',
    'Part',
    'Problem',
    'PublishZeros',
    'ResetService',
    'Rule',
    'SafetyConfig',
    'SafetyInput',
    'ScopeName',
    'ServerConfig',
    'SessionConfig',
    'Severity',
    'SimulationConfig',
    'Spatial',
    'SpeedScaling',
    'StrictModel',
    'TfRest',
    'TlsConfig',
    'TokenEntry',
    'TokensRead',
    'TopicChannel',
    'UnmeasuredRest',
    'UrdfFile',
    'UrdfTopic',
    'WorldConfig',
    'changing',
    'directory_of',
    'load',
    'load_text',
    'read_tokens',
    'write_tokens',
]
