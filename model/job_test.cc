#include "model/job.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::ElementsAre;

std::vector<std::string> Kept(std::vector<std::string> command) {
  JobSpec spec;
  spec.command = std::move(command);
  DropAllButCommand(spec);
  const std::vector<std::string> kept = spec.command;
  DropAllButCommand(spec);
  EXPECT_EQ(spec.command, kept) << "the second time";
  return kept;
}

TEST(DropAllButCommand, AShortCommandStaysAsItIs) {
  EXPECT_THAT(Kept({"./heat", "-n", ""}), ElementsAre("./heat", "-n", ""));
}

TEST(DropAllButCommand, OfManyWordsTheFirst) {
  EXPECT_EQ(Kept(std::vector<std::string>(kKeptWords, "x")), std::vector<std::string>(kKeptWords, "x"));
  std::vector<std::string> first(kKeptWords - 1, "x");
  first.push_back("...");
  EXPECT_EQ(Kept(std::vector<std::string>(kKeptWords + 1, "x")), first);
}

TEST(DropAllButCommand, OfALongOneTheBeginning) {
  EXPECT_THAT(Kept({"sh", "-c", std::string(5000, 'x'), "y"}),
              ElementsAre("sh", "-c", std::string(kKeptCommand - 3 - 3 - 1 - 3, 'x') + "..."));
}

TEST(DropAllButCommand, OneThatJustFitsIsNotCut) {
  EXPECT_THAT(Kept({std::string(kKeptCommand - 1, 'x')}), ElementsAre(std::string(kKeptCommand - 1, 'x')));
  EXPECT_THAT(Kept({std::string(kKeptCommand, 'x')}),
              ElementsAre(std::string(kKeptCommand - 4, 'x') + "..."));
}

TEST(DropAllButCommand, ManyWordsAreCutAsWell) {
  const std::vector<std::string> kept =
      Kept(std::vector<std::string>(20000, "a word that is somewhat longer than most"));
  EXPECT_EQ(kept.size(), 25U);
  EXPECT_EQ(kept.back(), "a word that ...");
}

TEST(DropAllButCommand, NoCharacterIsCutInTwo) {
  std::string word(1, 'x');
  for (int i = 0; i < 1000; ++i) word += "\u00fc";
  const std::string kept = Kept({word}).front();
  EXPECT_EQ(kept.size() % 2, 0U) << "one x, whole letters of two bytes, and three dots";
  EXPECT_EQ(kept.substr(kept.size() - 3), "...");
}

TEST(DropAllButCommand, NothingElseStays) {
  JobSpec spec;
  spec.env = {{"TOKEN", "secret"}};
  spec.app = AppMethod{};
  spec.app->restart_command = {"again"};
  DropAllButCommand(spec);
  EXPECT_TRUE(spec.env.empty());
  EXPECT_TRUE(spec.app->restart_command.empty());
}

}  // namespace
}  // namespace siding
