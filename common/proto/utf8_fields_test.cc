#include "common/proto/utf8_fields.h"

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/type.pb.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using google::protobuf::Field;
using google::protobuf::Struct;
using google::protobuf::Type;

// What is sent can be read by who gets it.
template <class Message>
bool Arrives(const Message& message) {
  Message received;
  return received.ParseFromString(message.SerializeAsString());
}

TEST(MakeUtf8, ATextAndOneInAMessageWithin) {
  Type message;
  message.set_name("process 7 (\xFF)");
  message.mutable_source_context()->set_file_name("\xC0");
  MakeUtf8(message);
  EXPECT_EQ(message.name(), "process 7 (\xEF\xBF\xBD)");
  EXPECT_EQ(message.source_context().file_name(), "\xEF\xBF\xBD");
  EXPECT_TRUE(Arrives(message));
}

TEST(MakeUtf8, ListsOfTextsAndOfMessages) {
  Type message;
  message.add_oneofs("good");
  message.add_oneofs("\xC0");
  message.add_fields()->set_name("\xC0");
  MakeUtf8(message);
  EXPECT_EQ(message.oneofs(0), "good");
  EXPECT_TRUE(Arrives(message));
}

TEST(MakeUtf8, BothSidesOfAMap) {
  Struct message;
  (*message.mutable_fields())["\xFE"].set_string_value("\xFF");
  MakeUtf8(message);
  EXPECT_EQ(message.fields().at("\xEF\xBF\xBD").string_value(), "\xEF\xBF\xBD");
  EXPECT_TRUE(Arrives(message));
}

TEST(MakeUtf8, WhatIsTextStaysAsItIs) {
  Field message;
  message.set_name("caf\xC3\xA9");
  message.set_number(3);
  const std::string before = message.SerializeAsString();
  MakeUtf8(message);
  EXPECT_EQ(message.SerializeAsString(), before);
}

}  // namespace
}  // namespace siding
