class Temperature:
    def __init__(self, celsius=0.0):
        self.celsius = celsius

    @property
    def celsius(self):
        return self._celsius

    @celsius.setter
    def celsius(self, value):
        if value < -273.15:
            raise ValueError(f"{value} is below absolute zero")
        self._celsius = value

    @property
    def fahrenheit(self):
        return self._celsius * 9 / 5 + 32

    @classmethod
    def from_fahrenheit(cls, value):
        return cls((value - 32) * 5 / 9)

    @staticmethod
    def unit():
        return "°C"

t = Temperature.from_fahrenheit(212)
print(t.celsius, t.fahrenheit, Temperature.unit())
try:
    t.celsius = -300
except ValueError as error:
    print(error)

#: prints
#| 100.0 212.0 °C
#| -300 is below absolute zero
