// Messages out of bytes: any input is a message, so that a fuzzer of what is done with messages spends none
// on those that protobuf itself refuses.
#pragma once

#include <fuzzer/FuzzedDataProvider.h>

#include <string>

#include "google/protobuf/message.h"

namespace siding::fuzz {

// Fills any of the message's fields. Numbers are often small, or at an end of their range; texts often names
// that others draw, too ("n1", "n2", "slurm", "1.1"), so that messages speak of the same things.
void Draw(FuzzedDataProvider& input, google::protobuf::Message& message, int depth = 0);

// One of those names, or any text.
std::string DrawText(FuzzedDataProvider& input);

}  // namespace siding::fuzz
