#include "record/torch_names.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "record/torch_makers.hpp"

namespace headroom {

namespace {

using Kind = Pickle::Kind;
using Node = Pickle::Node;

constexpr std::size_t deepest = 32;  // levels of dictionaries

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::none:
      return "None";
    case Kind::boolean:
      return "a truth value";
    case Kind::integer:
      return "a whole number";
    case Kind::real:
      return "a number";
    case Kind::string:
      return "text";
    case Kind::tuple:
      return "a tuple";
    case Kind::list:
      return "a list";
    case Kind::dictionary:
      return "a dictionary";
    case Kind::tensor:
      return "a tensor";
    case Kind::storage:
      return "a storage";
    case Kind::function:
      return "a function";
  }
  return "something else";
}

// The tensors of a dictionary by their joined names.
class Names {
 public:
  Names(const Pickle& pickle, const std::string& key) : pickle_(pickle) {
    const uint32_t chosen = choose(key);
    collect(chosen, "", 0);
    if (found_.empty()) throw BadTorchFile("holds no tensor");
  }
  std::vector<NamedTensor> take() { return std::move(found_); }

 private:
  const std::string& key_at(const Node& dictionary, std::size_t i) const {
    const Node& key = pickle_[dictionary.items[i]];
    if (key.kind != Kind::string)
      throw BadTorchFile(std::string("has ") + kind_name(key.kind) + " as a key where names are needed" + advice());
    return key.text;
  }

  uint32_t choose(const std::string& key) {
    uint32_t at = pickle_.root;
    if (pickle_[at].kind != Kind::dictionary)
      throw BadTorchFile(std::string("holds ") + kind_name(pickle_[at].kind) + ", not a dictionary of tensors");
    for (std::size_t begin = 0; begin < key.size();) {
      const std::size_t end = std::min(key.find('.', begin), key.size());
      at = member(at, key.substr(begin, end - begin));
      begin = end + 1;
    }
    return at;
  }
  uint32_t member(uint32_t dictionary, const std::string& name) const {
    const Node& node = pickle_[dictionary];
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      const Node& key = pickle_[node.items[i]];
      if (key.kind == Kind::string && key.text == name && pickle_[node.items[i + 1]].kind == Kind::dictionary)
        return node.items[i + 1];
    }
    throw BadTorchFile("has no dictionary " + shown_name(name) + advice());
  }

  void collect(uint32_t dictionary, const std::string& prefix, std::size_t depth) {
    if (depth > deepest) throw BadTorchFile("nests dictionaries too deeply");
    const Node& node = pickle_[dictionary];
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
      if (++visited_ > most_visited) throw BadTorchFile("holds more than a million tensors");
      const std::string name = prefix + key_at(node, i);
      const Node& value = pickle_[node.items[i + 1]];
      if (value.kind == Kind::dictionary) {
        collect(node.items[i + 1], name + ".", depth + 1);
      } else if (value.kind == Kind::tensor) {
        add(name, &pickle_.tensors[value.tensor]);
      } else {
        throw BadTorchFile("holds " + std::string(kind_name(value.kind)) + " as " + shown_name(name) + advice());
      }
    }
  }
  void add(const std::string& name, const PickledTensor* tensor) {
    try {
      static_cast<void>(nlohmann::json(name).dump());
    } catch (const nlohmann::json::exception&) {
      throw BadTorchFile("has a name that is not UTF-8: " + shown_name(name));
    }
    if (name == "__metadata__" || !names_.insert(name).second)
      throw BadTorchFile("has the name " + shown_name(name) + " twice or reserved");
    found_.push_back({name, tensor});
  }

  // Which dictionaries could be meant.
  std::string advice() const {
    std::string list;
    const Node& root = pickle_[pickle_.root];
    for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
      const Node& key = pickle_[root.items[i]];
      if (key.kind == Kind::string && pickle_[root.items[i + 1]].kind == Kind::dictionary && list.size() < 200)
        list += (list.empty() ? "" : ", ") + shown_name(key.text);
    }
    return list.empty() ? "; a dictionary of tensors is needed: save the model's state_dict()"
                        : "; choose a dictionary of tensors with --key: there are " + list;
  }

  static constexpr std::size_t most_visited = 1000000;
  const Pickle& pickle_;
  std::vector<NamedTensor> found_;
  std::set<std::string> names_;
  std::size_t visited_ = 0;
};

}  // namespace

std::vector<NamedTensor> named_tensors(const Pickle& pickle, const std::string& key) {
  return Names(pickle, key).take();
}

}  // namespace headroom
