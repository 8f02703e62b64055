#include "common/proto/utf8_fields.h"

#include <vector>

#include "common/utf8.h"

namespace siding {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void MakeTextUtf8(Message& message, const Reflection& reflection, const FieldDescriptor* field) {
  std::string scratch;
  if (!field->is_repeated()) {
    const std::string& text = reflection.GetStringReference(message, field, &scratch);
    if (FindNotUtf8(text)) reflection.SetString(&message, field, ToUtf8(text));
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const std::string& text = reflection.GetRepeatedStringReference(message, field, i, &scratch);
    if (FindNotUtf8(text)) reflection.SetRepeatedString(&message, field, i, ToUtf8(text));
  }
}

}  // namespace

void MakeUtf8(Message& message) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);  // those that are set
  for (const FieldDescriptor* field : fields) {
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      MakeTextUtf8(message, reflection, field);
    } else if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    } else if (!field->is_repeated()) {
      MakeUtf8(*reflection.MutableMessage(&message, field));
    } else {
      // The entries of a map are such messages, too.
      for (int i = 0; i < reflection.FieldSize(message, field); ++i)
        MakeUtf8(*reflection.MutableRepeatedMessage(&message, field, i));
    }
  }
}

}  // namespace siding
