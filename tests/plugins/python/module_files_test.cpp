// Which files a module's import statements lead to.
#include "module_files.hpp"

#include <fstream>
#include <gtest/gtest.h>

#include "../../runner/record/temporary_folder.hpp"

namespace headroom::python {
namespace {

class ModuleFiles : public TemporaryFolder {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  // The names, the module's first and the others in order.
  std::vector<std::string> of(const std::string& name) const {
    std::vector<std::string> names;
    for (const sdk::ModelFile& file : module_files(folder_ / name, "path")) names.push_back(file.name);
    return names;
  }
};

TEST_F(ModuleFiles, ImportsOfItsFolderAreFollowed) {
  write("net.py",
        "import torch, block\nfrom layers.norm import (Norm,  # a comment (\n    scale)\nimport other as block2\n");
  write("block.py", "from layers import attention; import deep.down\n");
  for (const char* name : {"layers/__init__.py", "layers/norm.py", "layers/attention.py", "deep/down.py", "other.py"})
    write(name, "");
  write("unused.py", "");
  const std::vector<std::string> expected{
      "net.py", "block.py", "deep/down.py", "layers/__init__.py", "layers/attention.py", "layers/norm.py", "other.py"};
  EXPECT_EQ(of("net.py"), expected);
}

TEST_F(ModuleFiles, ABracketInATextHidesNoImport) {
  write("net.py", "import first; print('import (')\nhint = 'from x import (y'\nimport second\n");
  write("first.py", "");
  write("second.py", "");
  EXPECT_EQ(of("net.py"), (std::vector<std::string>{"net.py", "first.py", "second.py"}));
}

TEST_F(ModuleFiles, APackageImportsFromAboveIt) {
  write("pack/__init__.py", "");
  write("pack/inner/__init__.py", "");
  write("pack/inner/net.py", "from .. import shared\nfrom pack.more import thing\n");
  write("pack/shared.py", "");
  write("pack/more.py", "");
  EXPECT_EQ(of("pack/inner/net.py"),
            (std::vector<std::string>{"pack/inner/net.py", "pack/__init__.py", "pack/inner/__init__.py", "pack/more.py",
                                      "pack/shared.py"}));
}

}  // namespace
}  // namespace headroom::python
