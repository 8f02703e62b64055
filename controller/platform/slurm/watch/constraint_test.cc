#include "controller/platform/slurm/watch/constraint.h"

#include "gtest/gtest.h"

namespace siding::slurm {
namespace {

bool Meets(const std::vector<std::string>& features, const std::string& text) {
  const auto constraint = Constraint::Parse(text);
  return constraint.ok() && constraint->MetBy(features);
}

TEST(Constraint, OneFeature) {
  EXPECT_TRUE(Meets({"fast", "new"}, "new"));
  EXPECT_FALSE(Meets({"fast"}, "new"));
}

TEST(Constraint, AllOfThem) {
  EXPECT_TRUE(Meets({"fast", "new"}, "new&fast"));
  EXPECT_FALSE(Meets({"fast"}, "new&fast"));
}

TEST(Constraint, OneOfThem) {
  EXPECT_TRUE(Meets({"fast"}, "new|fast"));
  EXPECT_FALSE(Meets({"old"}, "new|fast"));
}

TEST(Constraint, WhatIsNotPlannedWithIsNamed) {
  for (const char* const text : {"a&b|c", "[a|b]", "(a&b)|c", "a*2&b*3", "a,b"}) {
    const absl::Status status = Constraint::Parse(text).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << text;
    EXPECT_NE(std::string(status.message()).find(text), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace siding::slurm
