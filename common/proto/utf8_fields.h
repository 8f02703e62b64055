// Messages whose texts come from outside: the names of users' processes and files are any bytes.
#pragma once

#include "google/protobuf/message.h"

namespace siding {

// Makes UTF-8 of every text in it, also in messages within (common/utf8.h). The receiver of a message with
// invalid text can read nothing of it, and its sender would be disconnected.
void MakeUtf8(google::protobuf::Message& message);

}  // namespace siding
