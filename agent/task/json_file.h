// Protobuf messages as JSON files, replaced atomically.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files.h"
#include "common/proto/utf8_fields.h"
#include "common/status.h"
#include "google/protobuf/util/json_util.h"

namespace siding {

// Texts that are no UTF-8, such as names that users gave their files, become it (common/proto/utf8_fields.h).
template <class Message>
absl::StatusOr<std::string> ToJson(Message message) {
  MakeUtf8(message);
  std::string text;
  if (auto status = google::protobuf::util::MessageToJsonString(message, &text); !status.ok())
    return absl::InternalError(status.ToString());
  return text;
}

// kDataLoss if it is no JSON of this message.
template <class Message>
absl::StatusOr<Message> FromJson(const std::string& text) {
  Message message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // written by a later version
  if (auto status = google::protobuf::util::JsonStringToMessage(text, &message, options); !status.ok())
    return absl::DataLossError(status.ToString());
  return message;
}

template <class Message>
absl::Status WriteJsonFile(const std::string& path, const Message& message, int mode = 0644) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ToJson(message));
  return WriteFileAtomically(path, text + "\n", mode);
}

// As above, and it survives a power cut.
template <class Message>
absl::Status WriteJsonFileDurably(const std::string& path, const Message& message, int mode = 0644) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ToJson(message));
  return WriteFileDurably(path, text + "\n", mode);
}

// kNotFound if there is no such file, kDataLoss if it is no JSON of this message.
template <class Message>
absl::StatusOr<Message> ReadJsonFile(const std::string& path) {
  SIDING_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  auto message = FromJson<Message>(text);
  return message.ok() ? message : Annotate(message.status(), path);
}

}  // namespace siding
