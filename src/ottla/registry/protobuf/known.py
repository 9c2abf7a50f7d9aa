"""Types that every Protobuf schema may import without a reference."""

from __future__ import annotations

from typing import Final

_PACKAGES: Final = {
    "google.protobuf": (
        (
            "Any Api Method Mixin Duration Empty FieldMask SourceContext Struct Value ListValue Timestamp"
            " Type Field Enum EnumValue Option BoolValue BytesValue DoubleValue FloatValue Int32Value"
            " Int64Value StringValue UInt32Value UInt64Value FileDescriptorSet FileDescriptorProto"
            " DescriptorProto FieldDescriptorProto OneofDescriptorProto EnumDescriptorProto"
            " EnumValueDescriptorProto ServiceDescriptorProto MethodDescriptorProto FileOptions"
            " MessageOptions FieldOptions OneofOptions EnumOptions EnumValueOptions ServiceOptions"
            " MethodOptions ExtensionRangeOptions UninterpretedOption SourceCodeInfo GeneratedCodeInfo"
            " FeatureSet"
        ),
        "NullValue Syntax Edition Field.Kind Field.Cardinality",
    ),
    "google.type": (
        (
            "Color Date DateTime TimeZone Decimal Expr Fraction Interval LatLng LocalizedText Money PhoneNumber"
            " PostalAddress Quaternion TimeOfDay"
        ),
        "CalendarPeriod DayOfWeek Month",
    ),
    "confluent": ("Meta", ""),
    "confluent.type": ("Decimal", ""),
}
KNOWN_MESSAGES: Final = frozenset(
    f"{space}.{name}" for space, (found, _) in _PACKAGES.items() for name in found.split()
)
KNOWN_ENUMS: Final = frozenset(f"{space}.{name}" for space, (_, found) in _PACKAGES.items() for name in found.split())
KNOWN_EXTENSIONS: Final = frozenset(
    f"confluent.{kind}_meta" for kind in ("file", "message", "field", "enum", "enum_value")
)
KNOWN_IMPORTS: Final = ("google/protobuf/", "google/type/", "confluent/meta.proto", "confluent/type/")
