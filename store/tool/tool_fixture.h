// What the tests of siding-store's verbs share: a tier, and the program run on it.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "store/test_support.h"
#include "store/tool/tool.h"

namespace siding::store {

class ToolTest : public StoreTest {
 protected:
  int Run(const std::vector<std::string>& words) {
    std::vector<const char*> arguments = {"siding-store"};
    for (const std::string& word : words) arguments.push_back(word.c_str());
    out_.str("");
    err_.str("");
    return RunTool(static_cast<int>(arguments.size()), arguments.data(), out_, err_, stop_);
  }
  // Of the image with that key: another first byte.
  void Damage(const ImageKey& key, const std::string& name = "core-1.img") {
    const std::string path = store_->Path(key).value() + "/" + name;
    std::string first = ReadFile(path).value().substr(0, 1);
    first[0] ^= 1;
    ASSERT_TRUE(WriteAt(path, first));
  }
  std::string said() const { return out_.str() + err_.str(); }

  std::ostringstream out_, err_;
  std::function<bool()> stop_ = [] { return false; };
};

}  // namespace siding::store
