#include "page/server/json.h"

#include <google/protobuf/util/json_util.h>

#include <cmath>
#include <limits>

#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "siding/v1/agent.pb.h"
#include "siding/v1/api.pb.h"

namespace siding::page {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::json;

std::string AsProtobufHasIt(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  EXPECT_TRUE(google::protobuf::util::MessageToJsonString(message, &text, options).ok());
  return text;
}

// Something in each field, also of the messages in it.
class Filler {
 public:
  void Fill(Message& message, int depth = 0) {
    for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
      const FieldDescriptor& field = *message.GetDescriptor()->field(i);
      for (int count = field.is_repeated() ? 3 : 1; count > 0; --count) Set(message, field, depth);
    }
  }

 private:
  void Set(Message& message, const FieldDescriptor& field, int depth) {
    const google::protobuf::Reflection& to = *message.GetReflection();
    const bool repeated = field.is_repeated();
    const int64_t number = ++next_ % 2 == 0 ? next_ : -next_;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return repeated ? to.AddInt32(&message, &field, static_cast<int32_t>(number))
                        : to.SetInt32(&message, &field, static_cast<int32_t>(number));
      case FieldDescriptor::CPPTYPE_UINT32:
        return repeated ? to.AddUInt32(&message, &field, UINT32_MAX)
                        : to.SetUInt32(&message, &field, UINT32_MAX);
      case FieldDescriptor::CPPTYPE_INT64:
        return repeated ? to.AddInt64(&message, &field, INT64_MIN + next_)
                        : to.SetInt64(&message, &field, INT64_MIN + next_);
      case FieldDescriptor::CPPTYPE_UINT64:
        return repeated ? to.AddUInt64(&message, &field, UINT64_MAX)
                        : to.SetUInt64(&message, &field, UINT64_MAX);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return repeated ? to.AddDouble(&message, &field, 0.1 * next_)
                        : to.SetDouble(&message, &field, 1e30 / next_);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return repeated ? to.AddFloat(&message, &field, 0.5) : to.SetFloat(&message, &field, 0.5);
      case FieldDescriptor::CPPTYPE_BOOL:
        return repeated ? to.AddBool(&message, &field, true) : to.SetBool(&message, &field, true);
      case FieldDescriptor::CPPTYPE_ENUM: {
        const int value = next_ % 5 == 0 ? 77 : field.enum_type()->value(1)->number();
        return repeated ? to.AddEnumValue(&message, &field, value) : to.SetEnumValue(&message, &field, value);
      }
      case FieldDescriptor::CPPTYPE_STRING: {
        const std::string text = field.type() == FieldDescriptor::TYPE_BYTES
                                     ? std::string("\0\xff~", 3)
                                     : "a\"\\/<\n\t\x01\x7f \u00fc\u20ac\U0001F600" + std::to_string(next_);
        return repeated ? to.AddString(&message, &field, text) : to.SetString(&message, &field, text);
      }
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (depth < 6)
          Fill(repeated ? *to.AddMessage(&message, &field) : *to.MutableMessage(&message, &field), depth + 1);
    }
  }

  int64_t next_ = 0;
};

TEST(JsonTest, EachMessageIsAsProtobufHasIt) {
  for (const auto* file : {v1::Job::descriptor()->file(), v1::JobSpec::descriptor()->file(),
                           v1::TaskReport::descriptor()->file()}) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      const std::unique_ptr<Message> message(
          google::protobuf::MessageFactory::generated_factory()->GetPrototype(file->message_type(i))->New());
      EXPECT_EQ(json::parse(ToJson(*message)), json::parse(AsProtobufHasIt(*message)))
          << "empty " << message->GetTypeName();
      Filler().Fill(*message);
      EXPECT_EQ(json::parse(ToJson(*message)), json::parse(AsProtobufHasIt(*message)))
          << message->GetTypeName();
    }
  }
}
TEST(JsonTest, NumbersAreWhole) {
  v1::Job job;
  for (const double number : {0.0, -0.0, 0.1, 1e-300, 1.7976931348623157e308, 123456789.125}) {
    job.set_lost_node_seconds(number);
    EXPECT_EQ(json::parse(ToJson(job))["lost_node_seconds"].get<double>(), number);
  }
  job.set_lost_node_seconds(std::numeric_limits<double>::infinity());
  EXPECT_EQ(json::parse(ToJson(job))["lost_node_seconds"], "Infinity");
  job.set_lost_node_seconds(-job.lost_node_seconds());
  EXPECT_EQ(json::parse(ToJson(job))["lost_node_seconds"], "-Infinity");
  job.set_lost_node_seconds(std::nan(""));
  EXPECT_EQ(json::parse(ToJson(job))["lost_node_seconds"], "NaN");
}
// What users write as names may be no text; a browser could not read an answer with it.
TEST(JsonTest, WhatIsNoTextIsMarked) {
  const auto told = [](const std::string& text) {
    std::string answer;
    AppendJsonText(text, answer);
    return json::parse(answer).get<std::string>();
  };
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(told("a\xff"
                 "b"),
            "a" + mark + "b");
  EXPECT_EQ(told("\xc3"), mark) << "cut";
  EXPECT_EQ(told("\xc0\xaf"), mark + mark) << "longer than it needs to be";
  EXPECT_EQ(told("\xe0\x80\xaf"), mark + mark + mark);
  EXPECT_EQ(told("\xf0\x80\x80\xaf"), mark + mark + mark + mark);
  EXPECT_EQ(told("\xed\xa0\x80"), mark + mark + mark) << "half of a pair";
  EXPECT_EQ(told("\xf4\x90\x80\x80"), mark + mark + mark + mark) << "beyond the last character";
  EXPECT_EQ(told("\xf4\x8f\xbf\xbf\xed\x9f\xbf"), "\xf4\x8f\xbf\xbf\xed\x9f\xbf");
  EXPECT_EQ(told(std::string("\0", 1)), std::string("\0", 1));
}
// Else a list would seem to have changed.
TEST(JsonTest, AMessageIsAlwaysTheSame) {
  const auto told = [](bool backwards) {
    v1::JobSpec spec;
    for (int i = 0; i < 50; ++i) (*spec.mutable_labels())[std::to_string(backwards ? 49 - i : i)] = "x";
    return ToJson(spec);
  };
  EXPECT_EQ(told(false), told(true));
}

}  // namespace
}  // namespace siding::page
