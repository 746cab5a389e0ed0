from enum import IntEnum
from typing import Any

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue

class Parameter:
    class Type(IntEnum):
        NOT_SET = 0
        BOOL = 1
        INTEGER = 2
        DOUBLE = 3
        STRING = 4
        BYTE_ARRAY = 5
        BOOL_ARRAY = 6
        INTEGER_ARRAY = 7
        DOUBLE_ARRAY = 8
        STRING_ARRAY = 9
    def __init__(self, name: str, type_: Parameter.Type | None = None, value: Any = None) -> None: ...
    @classmethod
    def from_parameter_msg(cls, param_msg: ParameterMessage) -> Parameter: ...
    @property
    def name(self) -> str: ...
    @property
    def type_(self) -> Parameter.Type: ...
    @property
    def value(self) -> Any: ...
    def to_parameter_msg(self) -> ParameterMessage: ...

def parameter_value_to_python(parameter_value: ParameterValue) -> Any: ...
