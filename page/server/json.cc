#include "page/server/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/utf8.h"
#include "google/protobuf/descriptor.h"

namespace siding::page {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

template <class Number>
void AppendNumber(Number number, std::string& json) {
  std::array<char, 40> text;
  const auto end = std::to_chars(text.begin(), text.end(), number).ptr;
  json.append(text.begin(), end);
}

template <class Number>
void AppendQuoted(Number number, std::string& json) {
  json += '"';
  AppendNumber(number, json);
  json += '"';
}

template <class Number>
void AppendReal(Number number, std::string& json) {
  if (std::isnan(number)) {
    json += "\"NaN\"";
  } else if (std::isinf(number)) {
    json += number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else {
    AppendNumber(number, json);
  }
}

void AppendBytes(const std::string& bytes, std::string& json) {
  absl::StrAppend(&json, "\"", absl::Base64Escape(bytes), "\"");
}

void AppendEnum(const FieldDescriptor& field, int number, std::string& json) {
  const EnumValueDescriptor* value = field.enum_type()->FindValueByNumber(number);
  if (value == nullptr) {
    AppendNumber(number, json);
  } else {
    absl::StrAppend(&json, "\"", value->name(), "\"");
  }
}

void AppendMessage(const Message& message, std::string& json);

// A field that is there once, or one of those that are there several times.
class Value {
 public:
  Value(const Message& message, const FieldDescriptor& field)
      : message_(message), reflection_(*message.GetReflection()), field_(field) {}
  Value(const Message& message, const FieldDescriptor& field, int index) : Value(message, field) {
    index_ = index;
  }

  void Append(std::string& json) const {
    switch (field_.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return AppendNumber(Get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32), json);
      case FieldDescriptor::CPPTYPE_UINT32:
        return AppendNumber(Get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32), json);
      case FieldDescriptor::CPPTYPE_INT64:
        return AppendQuoted(Get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64), json);
      case FieldDescriptor::CPPTYPE_UINT64:
        return AppendQuoted(Get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64), json);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return AppendReal(Get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), json);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return AppendReal(Get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat), json);
      case FieldDescriptor::CPPTYPE_BOOL:
        json += Get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
        return;
      case FieldDescriptor::CPPTYPE_ENUM:
        return AppendEnum(field_, Get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue), json);
      case FieldDescriptor::CPPTYPE_STRING:
        return AppendText(json);
      case FieldDescriptor::CPPTYPE_MESSAGE:
        return AppendMessage(AsMessage(), json);
    }
  }
  const Message& AsMessage() const {
    return index_ < 0 ? reflection_.GetMessage(message_, &field_)
                      : reflection_.GetRepeatedMessage(message_, &field_, index_);
  }

 private:
  template <class Type>
  Type Get(Type (Reflection::*single)(const Message&, const FieldDescriptor*) const,
           Type (Reflection::*repeated)(const Message&, const FieldDescriptor*, int) const) const {
    return index_ < 0 ? (reflection_.*single)(message_, &field_)
                      : (reflection_.*repeated)(message_, &field_, index_);
  }
  void AppendText(std::string& json) const {
    std::string scratch;
    const std::string& text =
        index_ < 0 ? reflection_.GetStringReference(message_, &field_, &scratch)
                   : reflection_.GetRepeatedStringReference(message_, &field_, index_, &scratch);
    field_.type() == FieldDescriptor::TYPE_BYTES ? AppendBytes(text, json) : AppendJsonText(text, json);
  }

  const Message& message_;
  const Reflection& reflection_;
  const FieldDescriptor& field_;
  int index_ = -1;
};

void AppendList(const Message& message, const FieldDescriptor& field, int size, std::string& json) {
  json += '[';
  for (int i = 0; i < size; ++i) {
    if (i > 0) json += ',';
    Value(message, field, i).Append(json);
  }
  json += ']';
}

// JSON's keys are texts.
std::string KeyOf(const Message& entry) {
  std::string key;
  Value(entry, *entry.GetDescriptor()->map_key()).Append(key);
  if (key[0] != '"') key = absl::StrCat("\"", key, "\"");
  return key;
}

void AppendMap(const Message& message, const FieldDescriptor& field, int size, std::string& json) {
  std::map<std::string, std::string> entries;
  for (int i = 0; i < size; ++i) {
    const Message& entry = Value(message, field, i).AsMessage();
    Value(entry, *entry.GetDescriptor()->map_value()).Append(entries[KeyOf(entry)]);
  }
  json += '{';
  for (const auto& [key, value] : entries)
    absl::StrAppend(&json, json.back() == '{' ? "" : ",", key, ":", value);
  json += '}';
}

void AppendMessage(const Message& message, std::string& json) {
  const Reflection& reflection = *message.GetReflection();
  json += '{';
  bool is_first = true;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.has_presence() && !reflection.HasField(message, &field)) continue;
    if (!std::exchange(is_first, false)) json += ',';
    json += '"';
    json += field.name();
    json += "\":";
    const int size = field.is_repeated() ? reflection.FieldSize(message, &field) : 0;
    if (field.is_map()) {
      AppendMap(message, field, size, json);
    } else if (field.is_repeated()) {
      AppendList(message, field, size, json);
    } else {
      Value(message, field).Append(json);
    }
  }
  json += '}';
}

}  // namespace

void AppendJsonText(const std::string& text, std::string& json) {
  json += '"';
  if (std::all_of(text.begin(), text.end(), IsPlain)) {
    json += text;
  } else {
    for (const char c : ToUtf8(text)) {
      if (static_cast<unsigned char>(c) < 0x20) {
        absl::StrAppend(&json, "\\u", absl::Hex(c, absl::kZeroPad4));
      } else {
        if (c == '"' || c == '\\') json += '\\';
        json += c;
      }
    }
  }
  json += '"';
}

std::string ToJson(const Message& message) {
  std::string json;
  AppendMessage(message, json);
  return json;
}

}  // namespace siding::page
