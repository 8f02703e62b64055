#include "common/yaml/documents.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/parser.h>

#include <sstream>

namespace siding {
namespace {

// Keeps where the last document has begun, and nothing of what is in it.
class Beginnings final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override { last = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}

  YAML::Mark last;
};

}  // namespace

std::optional<YAML::Mark> FindSecondDocument(const std::string& text) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  Beginnings beginnings;
  if (!parser.HandleNextDocument(beginnings) || !parser.HandleNextDocument(beginnings)) return std::nullopt;
  return beginnings.last;
}

}  // namespace siding
