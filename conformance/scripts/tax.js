// A user-defined function.
function tax(income) {
  if (income === undefined) throw new Error("no income");
  if (income < 1000) return income * 0.1;
  if (income < 10000) return income * 0.2;
  return income * 0.4;
}
