#include "store/tool.h"

#include <sstream>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "store/test_support.h"

namespace siding::store {
namespace {

using testing::HasSubstr;

class ToolTest : public StoreTest {
 protected:
  ToolTest() {
    Put(key_);
    Put({CheckpointId("42.4"), 0}, "newer");
  }
  int Run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "siding-store");
    out_.str("");
    err_.str("");
    return RunTool(static_cast<int>(arguments.size()), arguments.data(), out_, err_);
  }
  void Damage() { ASSERT_TRUE(WriteAt(store_->Path(key_).value() + "/core-1.img", "x")); }

  std::ostringstream out_, err_;
};

TEST_F(ToolTest, ListNamesEachImage) {
  EXPECT_EQ(Run({"list", folder_.c_str()}), 0);
  EXPECT_THAT(out_.str(), testing::AllOf(HasSubstr("42.3 rank 0: 1 files, 7 B"), HasSubstr("42.4 rank 0: ")));
}

TEST_F(ToolTest, GoodImagesAreExitCode0) {
  EXPECT_EQ(Run({"verify", folder_.c_str()}), 0);
  EXPECT_THAT(out_.str(), HasSubstr(", good\n"));
}

TEST_F(ToolTest, DamagedFileIsNamedAndExitCode1) {
  Damage();
  EXPECT_EQ(Run({"verify", folder_.c_str()}), 1);
  EXPECT_THAT(out_.str(),
              HasSubstr("42.3 rank 0: DAMAGED: " + folder_ + "/images/42.3/0/core-1.img is damaged"));
}

TEST_F(ToolTest, OtherCheckpointsAreNotReadIfOneIsNamed) {
  Damage();
  EXPECT_EQ(Run({"verify", folder_.c_str(), "42.4"}), 0);
  EXPECT_THAT(out_.str(), testing::Not(HasSubstr("42.3 rank")));
}

TEST_F(ToolTest, JsonHasTheProblem) {
  Damage();
  EXPECT_EQ(Run({"verify", "--json", folder_.c_str()}), 1);
  const auto images = nlohmann::json::parse(out_.str())["images"];
  EXPECT_EQ(images[0]["damaged"], true);
  EXPECT_THAT(images[0]["problem"].get<std::string>(), HasSubstr("core-1.img"));
  EXPECT_EQ(images[1]["good"], true);
  EXPECT_EQ(images[1]["bytes"], 5);
}

TEST_F(ToolTest, UnknownCheckpointIsExitCode2) {
  EXPECT_EQ(Run({"verify", folder_.c_str(), "7.7"}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("there is no image of checkpoint 7.7"));
}

TEST_F(ToolTest, FolderThatIsNoStoreIsExitCode2AndStaysAsItIs) {
  std::filesystem::create_directory(folder_ + "/empty");
  EXPECT_EQ(Run({"list", (folder_ + "/empty").c_str()}), 2);
  EXPECT_THAT(err_.str(), HasSubstr("is no checkpoint store"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/empty"));
}

TEST_F(ToolTest, DraftsOfOthersStay) {
  const std::string draft = Staging() + "/42.3.0.trash";
  std::filesystem::create_directory(draft);
  EXPECT_EQ(Run({"verify", folder_.c_str()}), 0);
  EXPECT_TRUE(std::filesystem::exists(draft));
}

// Whoever can write to the folder chooses the names.
TEST_F(ToolTest, NamesDoNotSpeakToTheTerminal) {
  ASSERT_TRUE(WriteAt(store_->Path(key_).value() + "/\x1b]0;x\x07\n42.4 rank 0: good", "x"));
  EXPECT_EQ(Run({"verify", folder_.c_str()}), 1);
  EXPECT_THAT(out_.str(),
              testing::AllOf(testing::Not(HasSubstr("\x1b")), testing::Not(HasSubstr("\n42.4 rank 0: good")),
                             HasSubstr("does not belong to the image")));
}

TEST_F(ToolTest, NamesThatAreNoTextAreJsonAllTheSame) {
  ASSERT_TRUE(WriteAt(store_->Path(key_).value() + "/\xff", "x"));
  EXPECT_EQ(Run({"verify", folder_.c_str(), "--json"}), 1);
  EXPECT_TRUE(nlohmann::json::accept(out_.str()));
}

}  // namespace
}  // namespace siding::store
