#include "record/torch_pickle.hpp"

#include <algorithm>
#include <cstring>

namespace headroom {

namespace {

using Kind = Pickle::Kind;
using Node = Pickle::Node;

constexpr std::size_t most_bytes = 16 << 20;  // of a pickle: names and shapes of 100,000 tensors

// The stack machine that a pickle is a program for; Python's pickletools documents the operations. Stack and memo hold
// numbers of nodes.
class Machine {
 public:
  explicit Machine(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Pickle run() {
    while (!stopped_) step(take<uint8_t>());
    return std::move(pickle_);
  }

 private:
  // --- the bytes ---
  std::span<const std::byte> take_bytes(uint64_t count) {
    if (count > bytes_.size() - at_) malformed_pickle();
    const auto part = bytes_.subspan(at_, count);
    at_ += count;
    return part;
  }
  // Numbers are little-endian, as this machine is.
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string take_text(uint64_t count) {
    const auto part = take_bytes(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::string take_line() {
    const auto rest = bytes_.subspan(at_);
    const auto end = std::ranges::find(rest, std::byte{'\n'});
    if (end == rest.end()) malformed_pickle();
    std::string line = take_text(static_cast<uint64_t>(end - rest.begin()));
    ++at_;
    return line;
  }
  // LONG1: a count of bytes, then two's complement, little-endian. The missing bytes of a negative number are ones.
  int64_t take_long() {
    const uint64_t count = take<uint8_t>();
    if (count > 8) refuse_pickle("holds a whole number of more than 64 bits");
    const auto part = take_bytes(count);
    uint64_t value = count > 0 && (std::to_integer<int>(part.back()) & 0x80) != 0 ? ~uint64_t{0} : 0;
    std::memcpy(&value, part.data(), count);
    return static_cast<int64_t>(value);
  }

  // --- the stack ---
  void push(uint32_t number) { stack_.push_back(number); }
  void push_new(Kind kind, int64_t integer = 0, std::string text = {}) {
    push(pickle_.add({.kind = kind, .integer = integer, .text = std::move(text)}));
  }
  // Never below the last mark: pop_to_mark() counts on finding it inside the stack.
  uint32_t pop() {
    if (stack_.size() <= floor()) malformed_pickle();
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  uint32_t top() const {
    if (stack_.size() <= floor()) malformed_pickle();
    return stack_.back();
  }
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  std::vector<uint32_t> pop_to_mark() {
    if (marks_.empty()) malformed_pickle();
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void push_tuple(std::size_t count) {
    Node tuple{.kind = Kind::tuple, .items = std::vector<uint32_t>(count)};
    for (std::size_t i = count; i-- > 0;) tuple.items[i] = pop();
    push(pickle_.add(std::move(tuple)));
  }
  void add_to(Kind kind, const std::vector<uint32_t>& items) {
    Node& node = pickle_.nodes[top()];
    if (node.kind != kind || (kind == Kind::dictionary && items.size() % 2 != 0)) malformed_pickle();
    node.items.insert(node.items.end(), items.begin(), items.end());
  }
  // Writers number from 0 and spend a byte on each, so a larger place can only be a demand for memory.
  void remember(uint64_t place) {
    if (place > bytes_.size()) malformed_pickle();
    if (place >= memo_.size()) memo_.resize(place + 1, nothing);
    memo_[place] = top();
    // The next place, which MEMOIZE takes because it names none.
    remembered_ = std::max(remembered_, place + 1);
  }
  void recall(uint64_t place) {
    if (place >= memo_.size() || memo_[place] == nothing) malformed_pickle();
    push(memo_[place]);
  }

  // --- what is made ---
  // Refused by name before anything is made of it: this is where a hostile pickle would ask for os.system.
  void push_function(const std::string& name) {
    if (!TorchMakers::knows(name)) refuse_pickle("asks Python for " + shown_name(name));
    push_new(Kind::function, 0, name);
  }
  void push_storage() {
    const uint32_t id = pop();
    push(TorchMakers(pickle_).storage(id));
  }
  void call() {
    const uint32_t arguments = pop(), function = pop();
    push(TorchMakers(pickle_).call(function, arguments));
  }
  // torch hangs versions of modules on its dictionaries; they say nothing of the tensors.
  void set_state() {
    pop();
    if (pickle_[top()].kind != Kind::dictionary) refuse_pickle("sets the state of an object");
  }
  void stop() {
    pickle_.root = pop();
    stopped_ = true;
  }
  // torch.save writes protocol 2 unless told otherwise. This operation came with 2, and 5 is Python's latest.
  void check_protocol(int protocol) {
    if (protocol < 2 || protocol > 5) refuse_pickle("is of pickle protocol " + std::to_string(protocol));
  }
  // STACK_GLOBAL of protocol 4: module and name are strings on the stack instead of lines.
  void push_global_of_stack() {
    const uint32_t name = pop(), module = pop();
    if (pickle_[name].kind != Kind::string || pickle_[module].kind != Kind::string) malformed_pickle();
    push_function(pickle_[module].text + "." + pickle_[name].text);
  }

  void step(uint8_t code) {
    if (!container(code) && !value(code)) {
      constexpr char digits[] = "0123456789abcdef";
      refuse_pickle(std::string("uses the pickle operation 0x") + digits[code >> 4] + digits[code & 15]);
    }
  }
  // Operations that push a value: NONE, NEWTRUE, NEWFALSE, BININT (J, K, M), LONG1, BINFLOAT, the unicode strings,
  // GLOBAL, STACK_GLOBAL, BINPERSID and REDUCE.
  bool value(uint8_t code) {
    switch (code) {
      case 'N':
        push_new(Kind::none);
        return true;
      case 0x88:
        push_new(Kind::boolean, 1);
        return true;
      case 0x89:
        push_new(Kind::boolean, 0);
        return true;
      case 'J':
        push_new(Kind::integer, take<int32_t>());
        return true;
      case 'K':
        push_new(Kind::integer, take<uint8_t>());
        return true;
      case 'M':
        push_new(Kind::integer, take<uint16_t>());
        return true;
      case 0x8a:
        push_new(Kind::integer, take_long());
        return true;
      case 'G':
        // BINFLOAT: a tensor is told without floats, so the value is passed over.
        take<uint64_t>();
        push_new(Kind::real);
        return true;
      case 'X':
        push_new(Kind::string, 0, take_text(take<uint32_t>()));
        return true;
      case 0x8c:
        push_new(Kind::string, 0, take_text(take<uint8_t>()));
        return true;
      case 0x8d:
        push_new(Kind::string, 0, take_text(take<uint64_t>()));
        return true;
      case 'c': {
        const std::string module = take_line();
        push_function(module + "." + take_line());
        return true;
      }
      case 0x93:
        push_global_of_stack();
        return true;
      case 'Q':
        push_storage();
        return true;
      case 'R':
        call();
        return true;
      default:
        return false;
    }
  }
  // Operations on what is there: PROTO, FRAME, STOP, MARK, POP, tuples, lists, dictionaries (APPEND, SETITEM), BUILD,
  // and the memo (BINPUT, MEMOIZE, BINGET).
  bool container(uint8_t code) {
    switch (code) {
      case 0x80:
        check_protocol(take<uint8_t>());
        return true;
      case 0x95:
        take<uint64_t>();
        return true;  // a frame's length: how the bytes were buffered
      case '.':
        stop();
        return true;
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case '0':
        pop();
        return true;
      case '1':
        pop_to_mark();
        return true;
      case ')':
        push_tuple(0);
        return true;
      case 0x85:
        push_tuple(1);
        return true;
      case 0x86:
        push_tuple(2);
        return true;
      case 0x87:
        push_tuple(3);
        return true;
      case 't':
        push(pickle_.add({.kind = Kind::tuple, .items = pop_to_mark()}));
        return true;
      case ']':
        push_new(Kind::list);
        return true;
      case '}':
        push_new(Kind::dictionary);
        return true;
      case 'a':
        add_popped(Kind::list, 1);
        return true;
      case 's':
        add_popped(Kind::dictionary, 2);
        return true;
      case 'e':
        add_to_below(Kind::list);
        return true;
      case 'u':
        add_to_below(Kind::dictionary);
        return true;
      case 'b':
        set_state();
        return true;
      case 'q':
        remember(take<uint8_t>());
        return true;
      case 'r':
        remember(take<uint32_t>());
        return true;
      case 0x94:
        remember(remembered_);
        return true;
      case 'h':
        recall(take<uint8_t>());
        return true;
      case 'j':
        recall(take<uint32_t>());
        return true;
      default:
        return false;
    }
  }
  void add_popped(Kind kind, std::size_t count) {
    std::vector<uint32_t> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    add_to(kind, items);
  }
  void add_to_below(Kind kind) {
    const std::vector<uint32_t> items = pop_to_mark();
    add_to(kind, items);
  }

  // A place of the memo that nothing was put into.
  static constexpr uint32_t nothing = ~uint32_t{0};
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
  Pickle pickle_;
  // marks_: how large the stack was at each MARK. remembered_: one more than the largest place of the memo.
  std::vector<uint32_t> stack_, memo_;
  std::vector<std::size_t> marks_;
  uint64_t remembered_ = 0;
  bool stopped_ = false;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes) {
  if (bytes.size() > most_bytes)
    refuse_pickle("has a pickle of more than " + std::to_string(most_bytes >> 20) + " MiB");
  return Machine(bytes).run();
}

}  // namespace headroom
