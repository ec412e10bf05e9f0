"""Make pydantic models of msgspec structs: structs read and write fast, models document and explain."""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)
from pydantic_core import PydanticCustomError

_CONSTRAINTS = ("ge", "le", "gt", "lt", "min_length", "max_length", "description", "examples")
_IN_WORDS = {str: "text", float: "a finite number", NoneType: "null"}


@cache
def form_of(struct: type[msgspec.Struct]) -> type[BaseModel]:
    """Return the model of a struct: its fields, limits and descriptions; types are not converted.

    Unknown fields are refused where the struct refuses them, and allowed elsewhere.
    """
    extra: Literal["forbid", "allow"] = (
        "forbid" if struct.__struct_config__.forbid_unknown_fields else "allow"
    )
    config = ConfigDict(
        extra=extra,
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        json_schema_serialization_defaults_required=True,
    )
    hints = get_type_hints(struct, include_extras=True)
    fields: dict[str, Any] = {
        field.encode_name: (_annotation(hints[field.name]), _default(field))
        for field in msgspec.structs.fields(struct)
    }
    form = create_model(struct.__name__, __config__=config, __doc__=struct.__doc__, **fields)
    form.elsewhere = getattr(struct, "elsewhere", {})  # type: ignore[attr-defined] # of fields that another form has
    return form


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return Field(default_factory=field.default_factory)
    return ... if field.required else field.default


def _annotation(annotation: Any) -> Any:
    """The annotation of a model's field for that of a struct's."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return form_of(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        inner, meta = arguments
        given = {name: value for name in _CONSTRAINTS if (value := getattr(meta, name)) is not None}
        return Annotated[_annotation(inner), Field(**given)]
    if not arguments:
        return annotation
    inner_types = tuple(map(_annotation, arguments))
    if origin in (list, dict):
        return origin[inner_types]
    union = reduce(or_, inner_types)
    return Annotated[union, _one_fault(arguments)] if {str, float} <= set(arguments) else union


def _one_fault(types: tuple[type, ...]) -> WrapValidator:
    """Say once what a value may be, instead of once for each of the types that it is not."""
    *others, last = (_IN_WORDS[one] for one in types)

    def check(value: Any, check_union: ValidatorFunctionWrapHandler) -> Any:
        try:
            return check_union(value)
        except ValidationError:
            raise PydanticCustomError("cell", f"must be {', '.join(others)} or {last}") from None

    return WrapValidator(check)
