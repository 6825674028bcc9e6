#include "module_files.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

namespace headroom::python {

namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Whether brackets may go on to the next line: those of "from a import (b, c)". Of another line they may be in a text.
bool imports_names(const std::string& line) {
  std::istringstream last(line.substr(line.rfind('\n') + 1));
  std::string from, package, import;
  return last >> from >> package >> import && from == "from" && import.starts_with("import");
}

// Statements with brackets and backslashes joined into one line.
std::vector<std::string> statements(const std::string& text) {
  std::vector<std::string> lines;
  std::string line;
  int open = 0;
  bool comment = false;
  for (const char c : text + "\n") {
    if (c == '#') comment = true;
    if (c != '\n') {
      if (comment) continue;
      if (c == '(') ++open;
      if (c == ')') open = std::max(0, open - 1);
      line += c == ';' ? '\n' : c;
      continue;
    }
    comment = false;
    const bool goes_on = (open > 0 && imports_names(line)) || (!line.empty() && line.back() == '\\');
    if (goes_on) {
      if (line.back() == '\\') line.pop_back();
      line += ' ';
      continue;
    }
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part);) lines.push_back(part);
    line.clear();
    open = 0;
  }
  return lines;
}

std::vector<std::string> words_of(std::string statement) {
  for (char& c : statement) {
    if (c == ',' || c == '(' || c == ')' || c == '\t' || c == '\r') c = ' ';
  }
  std::istringstream stream(statement);
  std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
  // "a as b" names a.
  for (auto at = std::ranges::find(words, "as"); at != words.end(); at = std::ranges::find(words, "as"))
    words.erase(at, std::min(at + 2, words.end()));
  return words;
}

class Search {
 public:
  explicit Search(fs::path root) : root_(std::move(root)) {}

  void add(const fs::path& file) {
    std::error_code ignored;
    if (!fs::is_regular_file(file, ignored) || !found_.insert(file).second) return;
    for (const std::string& statement : statements(text_of(file))) follow(words_of(statement), file);
  }
  const std::set<fs::path>& found() const { return found_; }

 private:
  void follow(const std::vector<std::string>& words, const fs::path& file) {
    if (words.size() < 2) return;
    if (words[0] == "import") {
      for (auto name = words.begin() + 1; name != words.end(); ++name) module(root_, *name);
    }
    if (words[0] != "from" || words.size() < 4 || words[2] != "import") return;
    std::string name = words[1];
    fs::path folder = root_;
    if (name.front() == '.') {  // one dot is the package of the file, each more is one above it
      folder = file.parent_path();
      const size_t dots = std::min(name.find_first_not_of('.'), name.size());
      for (size_t i = 1; i < dots; ++i) folder = folder.parent_path();
      name.erase(0, dots);
    }
    if (!name.empty()) module(folder, name);
    for (auto item = words.begin() + 3; item != words.end(); ++item)
      module(folder, name.empty() ? *item : name + "." + *item);  // may be a module of a package
  }

  // a.b.c: each of a, a.b and a.b.c is a file or the package's __init__.py.
  void module(const fs::path& folder, const std::string& name) {
    fs::path at = folder;
    std::istringstream parts(name);
    for (std::string part; std::getline(parts, part, '.');) {
      at /= part;
      add(fs::path(at).concat(".py"));
      add(at / "__init__.py");
    }
  }

  fs::path root_;
  std::set<fs::path> found_;
};

}  // namespace

std::vector<sdk::ModelFile> module_files(const fs::path& file, const std::string& option) {
  std::error_code problem;
  const fs::path path = fs::canonical(file, problem);
  if (problem || !fs::is_regular_file(path, problem) || !std::ifstream(path)) {
    sdk::invalid(option + " is " + file.string() + ", which cannot be read" +
                 (problem ? ": " + problem.message() : std::string()));
  }
  fs::path root = path.parent_path();
  // Imports of a package start from above it.
  while (root.has_relative_path() && fs::exists(root / "__init__.py", problem)) root = root.parent_path();
  Search search(root);
  for (fs::path package = path.parent_path(); package != root; package = package.parent_path())
    search.add(package / "__init__.py");
  search.add(path);
  std::vector<sdk::ModelFile> files{{path.lexically_relative(root).string(), path.string()}};
  for (const fs::path& other : search.found()) {
    if (other != path) files.push_back({other.lexically_relative(root).string(), other.string()});
  }
  return files;
}

}  // namespace headroom::python
