// Messages as JSON, as protobuf has it, with the names of the proto: 64-bit numbers are strings, and what has
// its default is there too. Protobuf's own writer looks each type up by its name, and takes ten times as
// long: with ten thousand jobs that was most of what a page cost.
#pragma once

#include <string>

#include "google/protobuf/message.h"

namespace siding::page {

// The same for the same message: maps are in the order of their keys. Bytes that are no UTF-8 come as U+FFFD.
std::string ToJson(const google::protobuf::Message& message);

// In quotes.
void AppendJsonText(const std::string& text, std::string& json);

}  // namespace siding::page
