#include "tests/fuzz/draw.h"

#include <limits>

namespace siding::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kDeepest = 6;
constexpr int kMostElements = 3;
constexpr int kMostText = 24;

template <class Number>
Number DrawNumber(FuzzedDataProvider& input) {
  using Limits = std::numeric_limits<Number>;
  switch (input.ConsumeIntegralInRange(0, 7)) {
    case 0:
      return Limits::max();
    case 1:
      return Limits::lowest();
    case 2:
      return Limits::has_quiet_NaN ? Limits::quiet_NaN() : Number(1'000'000);
    case 3:
      return static_cast<Number>(input.ConsumeIntegral<int64_t>());
    default:
      return static_cast<Number>(input.ConsumeIntegralInRange(0, 9));
  }
}

// Sets a single field, or adds to one that is repeated.
void DrawField(FuzzedDataProvider& input, Message& message, const FieldDescriptor& field, int depth) {
  const Reflection& set = *message.GetReflection();
  const bool many = field.is_repeated();
  const auto put = [&](auto one, auto add, auto value) {
    many ? (set.*add)(&message, &field, value) : (set.*one)(&message, &field, value);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&Reflection::SetInt32, &Reflection::AddInt32, DrawNumber<int32_t>(input));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&Reflection::SetInt64, &Reflection::AddInt64, DrawNumber<int64_t>(input));
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(&Reflection::SetUInt32, &Reflection::AddUInt32, DrawNumber<uint32_t>(input));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(&Reflection::SetUInt64, &Reflection::AddUInt64, DrawNumber<uint64_t>(input));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(&Reflection::SetDouble, &Reflection::AddDouble, DrawNumber<double>(input));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&Reflection::SetFloat, &Reflection::AddFloat, DrawNumber<float>(input));
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&Reflection::SetBool, &Reflection::AddBool, input.ConsumeBool());
    case FieldDescriptor::CPPTYPE_ENUM:
      return put(&Reflection::SetEnumValue, &Reflection::AddEnumValue, input.ConsumeIntegralInRange(0, 15));
    case FieldDescriptor::CPPTYPE_STRING:
      return many ? set.AddString(&message, &field, DrawText(input))
                  : set.SetString(&message, &field, DrawText(input));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (depth >= kDeepest) return;
      return Draw(input, many ? *set.AddMessage(&message, &field) : *set.MutableMessage(&message, &field),
                  depth + 1);
  }
}

}  // namespace

std::string DrawText(FuzzedDataProvider& input) {
  static constexpr const char* kNames[] = {"",    "n1",  "n2",        "n3", "slurm",
                                           "1.1", "2.1", "slurm-1.1", "/x", "work"};
  const bool any = input.ConsumeIntegralInRange(0, 3) == 0;
  return any ? input.ConsumeRandomLengthString(kMostText) : input.PickValueInArray(kNames);
}

void Draw(FuzzedDataProvider& input, Message& message, int depth) {
  const auto& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count() && input.remaining_bytes() > 0; ++i) {
    const FieldDescriptor& field = *type.field(i);
    const int count = input.ConsumeIntegralInRange(0, field.is_repeated() ? kMostElements : 1);
    for (int n = 0; n < count; ++n) DrawField(input, message, field, depth);
  }
}

}  // namespace siding::fuzz
