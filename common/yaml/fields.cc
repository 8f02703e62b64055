#include "common/yaml/fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/utf8.h"
#include "common/yaml/documents.h"

namespace siding {
namespace {

// What a setter that has complained by itself answers.
const char* const kComplained = "\n";

// Errors of parsers read "expected ..." or "...: expected ...".
std::string WhatWasExpected(const absl::Status& status) {
  if (status.ok()) return "";
  const std::string message(status.message());
  const auto at = message.find("expected ");
  return at == std::string::npos ? message : message.substr(at + 9);
}

std::string Known(const Fields& fields) {
  return absl::StrJoin(fields, ", ", [](std::string* out, const auto& field) { *out += field.first; });
}

// "010" is 8 to YAML, and 10 to who wrote it.
bool HasLeadingZero(absl::string_view text) {
  while (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return text.size() > 1 && text.front() == '0';
}

}  // namespace

absl::Status FieldReader::Read(const std::string& text, const Fields& fields) {
  if (const auto at = FindNotUtf8(text)) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(*at), '\n');
    return absl::InvalidArgumentError(absl::StrCat(name_, ":", line, ": expected text in UTF-8"));
  }
  try {
    if (const auto second = FindSecondDocument(text)) {
      Complain(*second, "a second document begins here; expected one");
    } else if (const YAML::Node document = YAML::Load(text); !document.IsNull()) {
      ReadMap(document, fields);
    }
  } catch (const YAML::Exception& error) {
    Complain(error.mark, error.msg);
  }
  return problem_;
}

void FieldReader::ReadMap(const YAML::Node& map, const Fields& fields) {
  if (!map.IsMap()) return Complain(map.Mark(), "expected key: value pairs");
  std::set<std::string> seen;
  for (const auto& entry : map) {
    if (!problem_.ok()) return;
    const std::string key = entry.first.IsScalar() ? entry.first.as<std::string>() : "";
    const auto field = fields.find(key);
    if (field == fields.end()) {
      return Complain(entry.first.Mark(),
                      absl::StrCat("unknown key '", path_, key, "'; expected one of ", Known(fields)));
    }
    if (!seen.insert(key).second)
      return Complain(entry.first.Mark(), absl::StrCat(path_, key, ": is given twice; expected it once"));
    const std::string outer = path_;
    absl::StrAppend(&path_, key, ".");
    const std::string expected = field->second(entry.second);
    path_ = outer;
    if (!expected.empty() && expected != kComplained)
      return Complain(entry.second.Mark(), absl::StrCat(path_, key, ": expected ", expected));
  }
}

Setter FieldReader::Map(Fields fields) {
  return [this, fields = std::move(fields)](const YAML::Node& node) -> std::string {
    if (!node.IsMap()) return "key: value pairs";
    ReadMap(node, fields);
    return problem_.ok() ? "" : kComplained;
  };
}

Setter FieldReader::MapList(std::function<Fields()> next) {
  return [this, next = std::move(next)](const YAML::Node& node) -> std::string {
    if (!node.IsSequence()) return "a list";
    const std::string outer = path_.substr(0, path_.size() - 1);
    int i = 0;
    for (const YAML::Node& element : node) {
      path_ = absl::StrCat(outer, "[", ++i, "].");
      ReadMap(element, next());
      if (!problem_.ok()) return kComplained;
    }
    return "";
  };
}

void FieldReader::Complain(const YAML::Mark& mark, const std::string& text) {
  if (problem_.ok()) problem_ = absl::InvalidArgumentError(absl::StrCat(At(mark), ": ", text));
}

std::string FieldReader::At(const YAML::Mark& mark) const { return absl::StrCat(name_, ":", mark.line + 1); }

Setter Parsed(std::function<absl::Status(const std::string&)> parse) {
  return [parse = std::move(parse)](const YAML::Node& node) -> std::string {
    if (!node.IsScalar()) return "text";
    const absl::Status status = parse(node.as<std::string>());
    return WhatWasExpected(status);
  };
}

Setter Text(std::string& out) {
  return Parsed([&out](const std::string& text) {
    out = text;
    return absl::OkStatus();
  });
}

Setter WholeOf(std::function<void(int)> set, int least, int most) {
  return [set = std::move(set), least, most](const YAML::Node& node) -> std::string {
    int value = 0;
    if (!node.IsScalar() || !YAML::convert<int>::decode(node, value) || value < least || value > most)
      return absl::StrCat("a whole number from ", least, " to ", most);
    if (HasLeadingZero(node.Scalar())) return "a whole number without a zero before it";
    set(value);
    return "";
  };
}

Setter Whole(int& out, int least, int most) {
  return WholeOf([&out](int value) { out = value; }, least, most);
}

Setter Number(double& out, double least, double most) {
  return [&out, least, most](const YAML::Node& node) -> std::string {
    double value = 0;
    if (!node.IsScalar() || !YAML::convert<double>::decode(node, value) || !(value >= least && value <= most))
      return absl::StrCat("a number from ", least, " to ", most);
    out = value;
    return "";
  };
}

Setter Flag(bool& out) {
  return [&out](const YAML::Node& node) -> std::string {
    return node.IsScalar() && YAML::convert<bool>::decode(node, out) ? "" : "true or false";
  };
}

Setter SpanOf(std::function<void(Duration)> set) {
  return [set = std::move(set)](const YAML::Node& node) -> std::string {
    const auto value = node.IsScalar() ? ParseDuration(node.as<std::string>())
                                       : absl::StatusOr<Duration>(absl::InvalidArgumentError(""));
    if (!value.ok()) return "a duration such as 90s, 1m30s or 250ms";
    set(*value);
    return "";
  };
}

Setter Span(Duration& out) {
  return SpanOf([&out](Duration value) { out = value; });
}

Setter NamesOf(std::function<absl::Status(const std::vector<std::string>&)> set) {
  return [set = std::move(set)](const YAML::Node& node) -> std::string {
    std::vector<std::string> names;
    if (node.IsScalar()) names.push_back(node.as<std::string>());
    if (!node.IsScalar() && !node.IsSequence()) return "a name or a list of names";
    for (const YAML::Node& name : node) {
      if (!name.IsScalar()) return "a name or a list of names";
      names.push_back(name.as<std::string>());
    }
    const absl::Status status = set(names);
    return WhatWasExpected(status);
  };
}

Setter Names(std::set<std::string>& out) {
  return NamesOf([&out](const std::vector<std::string>& names) {
    out = {names.begin(), names.end()};
    return absl::OkStatus();
  });
}

}  // namespace siding
