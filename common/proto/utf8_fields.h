// Messages whose texts come from outside: the names of users' processes and files are any bytes.
#pragma once

#include "google/protobuf/message.h"

namespace siding {

// Makes UTF-8 of every text in it, also in messages within (common/utf8.h). Whoever gets a message with a
// text that is none can read nothing of it, and its sender would be cut off.
void MakeUtf8(google::protobuf::Message& message);

}  // namespace siding
