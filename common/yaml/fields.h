// Reads YAML files of ours: named fields, each with what it takes. Every error names file, line, field and
// what was expected; unknown and repeated keys are errors, and so is a second document in the same file.
// yaml-cpp throws; nothing comes out of here.
#pragma once

#include <yaml-cpp/yaml.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/units.h"

namespace siding {

// Takes a field's value, or returns what was expected; "" if it was taken.
using Setter = std::function<std::string(const YAML::Node&)>;
using Fields = std::map<std::string, Setter>;

class FieldReader {
 public:
  // `name` stands for the file in errors.
  explicit FieldReader(std::string name) : name_(std::move(name)) {}

  // A whole file. Nothing at all is as good as no fields.
  absl::Status Read(const std::string& text, const Fields& fields);

  // Setters for what is inside a field: a map of its own, or a list of them, `read` being given each.
  Setter Map(Fields fields);
  Setter MapList(std::function<Fields()> next);

 private:
  void ReadMap(const YAML::Node& map, const Fields& fields);
  void Complain(const YAML::Mark& mark, const std::string& text);
  std::string At(const YAML::Mark& mark) const;

  const std::string name_;
  std::string path_;      // "classes[2]."
  absl::Status problem_;  // the first
};

// ---- Setters for one value. What they write to must outlive them. ----

// Whatever `parse` makes of the text; its error says what was expected.
Setter Parsed(std::function<absl::Status(const std::string&)> parse);
Setter Text(std::string& out);
Setter Whole(int& out, int least, int most);
Setter WholeOf(std::function<void(int)> set, int least, int most);
Setter Number(double& out, double least, double most);
Setter Flag(bool& out);
Setter Span(Duration& out);
Setter SpanOf(std::function<void(Duration)> set);
// One name or a list of them.
Setter NamesOf(std::function<absl::Status(const std::vector<std::string>&)> set);
Setter Names(std::set<std::string>& out);

}  // namespace siding
