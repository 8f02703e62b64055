#include "common/yaml/fields.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class FieldsTest : public testing::Test {
 protected:
  std::string Read(const std::string& text) {
    FieldReader reader("f.yaml");
    const auto item = [&]() -> Fields {
      items_.emplace_back();
      return {{"name", Text(items_.back())}};
    };
    return std::string(reader
                           .Read(text, {{"count", Whole(count_, 1, 9)},
                                        {"share", Number(share_, 0, 1)},
                                        {"span", Span(span_)},
                                        {"on", Flag(on_)},
                                        {"names", Names(names_)},
                                        {"inner", reader.Map({{"text", Text(text_)}})},
                                        {"items", reader.MapList(item)}})
                           .message());
  }

  int count_ = 0;
  double share_ = 0;
  Duration span_{0};
  bool on_ = false;
  std::set<std::string> names_;
  std::string text_;
  std::vector<std::string> items_ = std::vector<std::string>();
};

TEST_F(FieldsTest, TakesEveryKind) {
  items_.reserve(4);  // setters point into it
  EXPECT_EQ(Read("count: 3\nshare: 0.5\nspan: 90s\non: true\nnames: [a, b]\ninner: {text: x}\n"
                 "items:\n- name: p\n- name: q\n"),
            "");
  EXPECT_EQ(count_, 3);
  EXPECT_EQ(share_, 0.5);
  EXPECT_EQ(span_, std::chrono::seconds(90));
  EXPECT_TRUE(on_);
  EXPECT_THAT(names_, ElementsAre("a", "b"));
  EXPECT_EQ(text_, "x");
  EXPECT_THAT(items_, ElementsAre("p", "q"));
}

TEST_F(FieldsTest, AWholeNumberIsWhatItLooksLike) {
  EXPECT_EQ(Read("count: 010\n"), "f.yaml:1: count: expected a whole number without a zero before it");
}
TEST_F(FieldsTest, NothingIsAsGoodAsNoFields) { EXPECT_EQ(Read("# only a comment\n"), ""); }
TEST_F(FieldsTest, OnlyUtf8IsText) {
  EXPECT_EQ(Read("count: 3\nnames: [caf\xC3\xA9]\n"), "");
  EXPECT_EQ(Read("count: 3\nnames: [caf\xE9]\n"), "f.yaml:2: expected text in UTF-8");
}
TEST_F(FieldsTest, OneNameIsAListOfOne) {
  EXPECT_EQ(Read("names: a\n"), "");
  EXPECT_THAT(names_, ElementsAre("a"));
}
TEST_F(FieldsTest, UnknownKeysAreErrorsWithTheKnownOnes) {
  EXPECT_EQ(Read("count: 1\ncuont: 2\n"),
            "f.yaml:2: unknown key 'cuont'; expected one of count, inner, items, names, on, share, span");
}
TEST_F(FieldsTest, AKeyIsGivenOnce) {
  EXPECT_EQ(Read("count: 1\ncount: 2\n"), "f.yaml:2: count: is given twice; expected it once");
}
TEST_F(FieldsTest, AFileIsOneDocument) {
  EXPECT_EQ(Read("count: 1\n---\ncount: 2\n"), "f.yaml:2: a second document begins here; expected one");
}
TEST_F(FieldsTest, ATextThatTheLibraryTakesForEndlesslyManyDocuments) { EXPECT_NE(Read(",SR1"), ""); }
TEST_F(FieldsTest, NumbersHaveARange) {
  EXPECT_EQ(Read("count: 10\n"), "f.yaml:1: count: expected a whole number from 1 to 9");
  EXPECT_EQ(Read("share: .nan\n"), "f.yaml:1: share: expected a number from 0 to 1");
}
TEST_F(FieldsTest, ErrorsInsideNameTheWay) {
  items_.reserve(4);
  EXPECT_EQ(Read("inner:\n  text: [a]\n"), "f.yaml:2: inner.text: expected text");
  EXPECT_EQ(Read("items:\n- name: a\n- nmae: b\n"),
            "f.yaml:3: unknown key 'items[2].nmae'; expected one of name");
}
TEST_F(FieldsTest, BrokenYamlHasALine) { EXPECT_EQ(Read("a: [1,\n").substr(0, 7), "f.yaml:"); }
TEST_F(FieldsTest, AListIsNoMap) { EXPECT_EQ(Read("- a\n"), "f.yaml:1: expected key: value pairs"); }

// Each name stands for ten of the one before: ten thousand million values in all, if they were expanded.
TEST_F(FieldsTest, AliasesAreNotMadeIntoCopies) {
  std::string text = "names: [x]\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = absl::StrCat("*a", i - 1);
    text += absl::StrCat("a", i, ": &a", i, " [", before);
    for (int n = 1; n < 10; ++n) text += ", " + before;
    text += "]\n";
  }
  EXPECT_THAT(Read(text), HasSubstr("unknown key 'a0'"));
  EXPECT_EQ(Read("names: *nobody\n").substr(0, 7), "f.yaml:");
}
TEST_F(FieldsTest, DeepNestingIsAnError) {
  EXPECT_NE(Read(std::string(100'000, '[')), "");
  EXPECT_NE(Read("names: " + std::string(100'000, '{')), "");
}

}  // namespace
}  // namespace siding
